package sip_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/transport"
)

// heldTrying is a tracer that delays each 100 until it is closed.
type heldTrying chan struct{}

func (h heldTrying) Trace(e transport.TraceEntry) {
	if e.Sent && e.Message.HasPrefix("SIP/2.0 100") {
		<-h
	}
}

// TestInvite_HandlerRunsBeforeTryingIsSent: the handler need not wait for the 100, but can.
func TestInvite_HandlerRunsBeforeTryingIsSent(t *testing.T) {
	t.Parallel()
	say := make(chan struct{})
	let := sync.OnceFunc(func() { close(say) })
	defer let()
	server := newTestServer(t, sip.Config{Accounts: sip.AnySource{}, Tracer: heldTrying(say)})
	p := newPeer(t, "udp", server)
	p.sendRequest("INVITE", "anybody", "call-1", 1, "")
	in := server.wantInbound(t) // although its 100 is not sent yet
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
	in.AwaitTrying() // returns at once after the 100
	in.Listen(func(sip.Event) {})
	in.Reject(486, "", 0)
	p.wantMessage("SIP/2.0 486")
}
