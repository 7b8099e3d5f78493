package pbx

import (
	"log/slog"
	"testing"

	"soniq/internal/platform/clock"
	"soniq/internal/protocol/sip/transport"
	"soniq/internal/telephony/call"
)

// The race detector reports a failure if another goroutine reads the id during the change.
func TestAttachLeg_KeepsTracedMessages(t *testing.T) {
	t.Parallel()
	s := &Switch{cfg: Config{Clock: clock.System(), Log: slog.New(slog.DiscardHandler)}}
	from, to := s.newCall(call.New{ID: "call_1"}), s.newCall(call.New{ID: "call_2"})
	l := from.newLeg("callee")
	l.publishID()
	s.byCallID.Store("dialog", l)
	const messages = 200
	traced := make(chan struct{})
	go func() {
		defer close(traced)
		for range messages {
			s.Trace(transport.TraceEntry{CallID: "dialog"})
		}
	}()
	for range messages {
		to.attachLeg(l)
	}
	<-traced
	if n := len(from.timeline.Copy().Messages) + len(to.timeline.Copy().Messages); n != messages {
		t.Errorf("%d messages are kept of %d", n, messages)
	}
}
