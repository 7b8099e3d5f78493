package sipmsg_test

import (
	"testing"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
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
		digit, d, ok := sipmsg.ParseDTMFInfo(c.kind, []byte(c.body))
		if ok != (c.digit != 0) || digit != c.digit || ok && d != c.duration {
			t.Errorf("%s %q: %q %v %v, want %q %v", c.kind, c.body, digit, d, ok, c.digit, c.duration)
		}
	}
	for _, digit := range "0123456789*#ABCD" {
		kind, body := sipmsg.DTMFInfo(digit, 120*ms)
		if got, d, ok := sipmsg.ParseDTMFInfo(kind, body); !ok || got != digit || d != 120*ms {
			t.Errorf("%q is read back as %q, %v, %v", digit, got, d, ok)
		}
	}
}
