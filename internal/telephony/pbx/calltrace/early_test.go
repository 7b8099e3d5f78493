package calltrace

import (
	"fmt"
	"testing"

	"soniq/internal/protocol/sip/transport"
)

func TestEarlyTraces_Bounded(t *testing.T) {
	t.Parallel()
	var o Early
	said := func(id, text string) {
		o.Add(id, Message{Message: transport.NewRawMessage(text)})
	}
	said("a", "REGISTER sip:x SIP/2.0") // not an INVITE
	if got := o.Take("a"); got != nil {
		t.Errorf("kept of a REGISTER: %v", got)
	}
	for n := range 3 * maxEarlyMessages {
		said("b", fmt.Sprintf("INVITE sip:%d SIP/2.0", n))
	}
	if got := o.Take("b"); len(got) != maxEarlyMessages || o.Take("b") != nil {
		t.Errorf("%d messages of one call are kept, want %d, once", len(got), maxEarlyMessages)
	}
	for n := range 5 * maxEarlyTraces {
		said(fmt.Sprint(n), "INVITE sip:x SIP/2.0")
	}
	if len(o.messages) != maxEarlyTraces || len(o.Take(fmt.Sprint(5*maxEarlyTraces-1))) != 1 || o.Take("0") != nil {
		t.Errorf("%d calls are kept, want the newest %d", len(o.messages), maxEarlyTraces)
	}
}
