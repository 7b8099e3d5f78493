package sip_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"soniq/internal/protocol/sip"
)

// TestACallIsHandedOverWhileItsCallerIsTold: who looks after the call need not wait for the 100, and can.
func TestACallIsHandedOverWhileItsCallerIsTold(t *testing.T) {
	t.Parallel()
	say := make(chan struct{})
	let := sync.OnceFunc(func() { close(say) })
	defer let()
	server := listen(t, sip.Config{Accounts: sip.AnySource{}, Trace: func(e sip.TraceEntry) {
		if e.Sent && e.Message.Begins("SIP/2.0 100") {
			<-say
		}
	}})
	p := newPeer(t, "udp", server)
	p.ask("INVITE", "anybody", "call-1", 1, "")
	in := server.incoming(t) // though its 100 is not said yet
	told := make(chan struct{})
	go func() {
		in.AwaitTrying()
		close(told)
	}()
	for range 100 {
		runtime.Gosched()
	}
	select {
	case <-told:
		t.Error("the caller has heard nothing yet")
	default:
	}
	let()
	<-told
	if m := p.read(); !strings.HasPrefix(m, "SIP/2.0 100") {
		t.Errorf("the caller hears first:\n%s", m)
	}
	in.AwaitTrying() // once it is said it stays so
	in.Listen(func(sip.Event) {})
	in.Reject(486, "", 0)
	p.expect("SIP/2.0 486")
}
