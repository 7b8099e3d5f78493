package sip_test

import (
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

func TestDTMFInfo_ReadAndWrite(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		kind, body string
		digit      rune
		duration   time.Duration
	}{
		{"application/dtmf-relay", "Signal=5\r\nDuration=160\r\n", '5', 160 * ms},
		{"Application/DTMF-Relay;x=y", "Duration = 90\nSignal = *\n", '*', 90 * ms},
		{"application/dtmf-relay", "Signal=#", '#', 250 * ms},
		{"application/dtmf-relay", "Signal=11\r\nDuration=0\r\n", '#', 250 * ms},
		{"application/dtmf-relay", "Signal=d\r\nDuration=99999999\r\n", 'D', 5 * time.Second},
		{"application/dtmf-relay", "Signal=1\r\nDuration=-5\r\n", '1', 250 * ms},
		{"application/dtmf", "7", '7', 250 * ms},
		{"application/dtmf", " 10\r\n", '*', 250 * ms},
		{"application/dtmf-relay", "Duration=160\r\n", 0, 0},
		{"application/dtmf-relay", "Signal=16\r\n", 0, 0},
		{"application/dtmf-relay", "Signal=E\r\n", 0, 0},
		{"application/dtmf", "", 0, 0},
		{"application/dtmf", "55", 0, 0},
		{"text/plain", "5", 0, 0},
	} {
		digit, d, ok := sip.ParseDTMFInfo(c.kind, []byte(c.body))
		if ok != (c.digit != 0) || digit != c.digit || ok && d != c.duration {
			t.Errorf("%s %q: %q %v %v, want %q %v", c.kind, c.body, digit, d, ok, c.digit, c.duration)
		}
	}
	for _, digit := range "0123456789*#ABCD" {
		kind, body := sip.DTMFInfo(digit, 120*ms)
		if got, d, ok := sip.ParseDTMFInfo(kind, body); !ok || got != digit || d != 120*ms {
			t.Errorf("%q is read back as %q, %v, %v", digit, got, d, ok)
		}
	}
}

func TestOptions_StatusAndRTT(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		a, b := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
		to := sip.Target{Host: b.Addr().String(), Transport: transport}
		status, rtt, err := a.SendOptions(testContext(t), to, "")
		if err != nil || status != 200 || rtt <= 0 || rtt > testTimeout {
			t.Errorf("%s: %d after %v, %v", transport, status, rtt, err)
		}
		b.Drain()
		if status, _, err := a.SendOptions(testContext(t), to, b.uri("x")); err != nil || status != 503 {
			t.Errorf("%s: a draining server answers %d, %v", transport, status, err)
		}
	}
}

func TestOptions_UnreachableFails(t *testing.T) {
	t.Parallel()
	a, b := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	to := sip.Target{Host: b.Addr().String(), Transport: sip.TCP}
	b.Close()
	if status, _, err := a.SendOptions(testContext(t), to, ""); err == nil || status != 503 {
		t.Errorf("got %d, %v", status, err)
	}
	if _, _, err := a.SendOptions(testContext(t), sip.Target{Host: "x y"}, ""); err == nil {
		t.Error("nonsense is asked")
	}
}

func TestOptions_Capabilities(t *testing.T) {
	t.Parallel()
	p := newPeer(t, "udp", newTestServer(t, sip.Config{}))
	p.sendRequest("OPTIONS", "x", "o", 1, "")
	m := p.wantMessage("SIP/2.0 200")
	for name, value := range map[string]string{
		"Allow":     "INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, REFER, NOTIFY, UPDATE, PRACK",
		"Supported": "100rel, norefersub, path, replaces, timer",
		"Accept":    "application/sdp", "Allow-Events": "refer",
	} {
		if got := headerValue(m, name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}
