package pbx

import (
	"fmt"
	"testing"

	"soniq/internal/protocol/sip"
)

func TestEarlyTraces_Bounded(t *testing.T) {
	t.Parallel()
	var o earlyTraces
	said := func(id, text string) {
		o.add(id, tracedMessage{message: sip.NewRawMessage(text)})
	}
	said("a", "REGISTER sip:x SIP/2.0") // not an INVITE
	if got := o.take("a"); got != nil {
		t.Errorf("kept of a REGISTER: %v", got)
	}
	for n := range 3 * maxEarlyMessages {
		said("b", fmt.Sprintf("INVITE sip:%d SIP/2.0", n))
	}
	if got := o.take("b"); len(got) != maxEarlyMessages || o.take("b") != nil {
		t.Errorf("%d messages of one call are kept, want %d, once", len(got), maxEarlyMessages)
	}
	for n := range 5 * maxEarlyTraces {
		said(fmt.Sprint(n), "INVITE sip:x SIP/2.0")
	}
	if len(o.messages) != maxEarlyTraces || len(o.take(fmt.Sprint(5*maxEarlyTraces-1))) != 1 || o.take("0") != nil {
		t.Errorf("%d calls are kept, want the newest %d", len(o.messages), maxEarlyTraces)
	}
}
