package sip_test

import (
	"testing"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
)

func TestOptions_StatusAndRTT(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		a, b := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
		to := resolve.Target{Host: b.Addr().String(), Transport: transport}
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
	to := resolve.Target{Host: b.Addr().String(), Transport: sipmsg.TCP}
	b.Close()
	if status, _, err := a.SendOptions(testContext(t), to, ""); err == nil || status != 503 {
		t.Errorf("got %d, %v", status, err)
	}
	if _, _, err := a.SendOptions(testContext(t), resolve.Target{Host: "x y"}, ""); err == nil {
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
		"Accept":    "application/sdp, multipart/mixed", "Allow-Events": "refer",
	} {
		if got := headerValue(m, name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}
