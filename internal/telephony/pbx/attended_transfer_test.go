package pbx

import (
	"log/slog"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// The race detector reports a failure if another goroutine reads the id during the change.
func TestAttachLeg_KeepsTracedMessages(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	from, to := s.newCall(call.New{ID: "call_1"}), s.newCall(call.New{ID: "call_2"})
	l := from.newLeg("callee")
	l.publishID()
	s.byCallID.Store("dialog", l)
	const messages = 200
	traced := make(chan struct{})
	go func() {
		defer close(traced)
		for range messages {
			s.Trace(sip.TraceEntry{CallID: "dialog"})
		}
	}()
	for range messages {
		to.attachLeg(l)
	}
	<-traced
	if n := len(from.timeline.copy().Messages) + len(to.timeline.copy().Messages); n != messages {
		t.Errorf("%d messages are kept of %d", n, messages)
	}
}
