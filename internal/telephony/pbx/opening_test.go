package pbx

import (
	"fmt"
	"testing"

	"soniq/internal/protocol/sip"
)

func TestOpeningsOfStrangersAreBounded(t *testing.T) {
	t.Parallel()
	var o openings
	said := func(id, text string) {
		o.keep(id, traced{message: sip.Said(text)})
	}
	said("a", "REGISTER sip:x SIP/2.0") // not an INVITE
	if got := o.take("a"); got != nil {
		t.Errorf("kept of a REGISTER: %v", got)
	}
	for n := range 3 * maxOpeningMessages {
		said("b", fmt.Sprintf("INVITE sip:%d SIP/2.0", n))
	}
	if got := o.take("b"); len(got) != maxOpeningMessages || o.take("b") != nil {
		t.Errorf("%d messages of one call are kept, want %d, once", len(got), maxOpeningMessages)
	}
	for n := range 5 * maxOpenings {
		said(fmt.Sprint(n), "INVITE sip:x SIP/2.0")
	}
	if len(o.messages) != maxOpenings || len(o.take(fmt.Sprint(5*maxOpenings-1))) != 1 || o.take("0") != nil {
		t.Errorf("%d calls are kept, want the newest %d", len(o.messages), maxOpenings)
	}
}
