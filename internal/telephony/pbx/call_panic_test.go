package pbx

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/telephony/call"
)

// panicTestCall returns a call that has begun and was not answered.
func panicTestCall() *liveCall {
	s := &Switch{cfg: Config{Clock: clock.System(), Log: slog.New(slog.DiscardHandler)}}
	c := s.newCall(call.New{ID: "call_1", StartedAt: time.Now()})
	c.a = c.newLeg("caller")
	return c
}

// TestPanic_EndsItsCallOnly lets the start of a call, a message and a goroutine of a call panic. Each call ends with a
// reason. The process, and with it this test, goes on.
func TestPanic_EndsItsCallOnly(t *testing.T) {
	t.Parallel()
	fault := func(context.Context) { panic("a fault of this test") }
	for name, begin := range map[string]func(c *liveCall) func(context.Context){
		"start": func(*liveCall) func(context.Context) { return fault },
		"message": func(c *liveCall) func(context.Context) {
			c.inbox.Push(message{run: fault})
			return func(context.Context) {}
		},
		"goroutine": func(c *liveCall) func(context.Context) {
			return func(context.Context) {
				c.runAsync(time.Minute, func(ctx context.Context) func(context.Context) { fault(ctx); return nil })
			}
		},
	} {
		c := panicTestCall()
		c.run(t.Context(), begin(c))
		if c.outcome.Reason != "internal_error" || c.outcome.HangupBy != "system" {
			t.Errorf("%s: the call ended with %+v", name, c.outcome)
		}
		c.sw.running.Wait()
	}
}

// TestPanic_EmergencyCallGoesOn lets a message of an answered emergency call panic. Messages after it are handled.
func TestPanic_EmergencyCallGoesOn(t *testing.T) {
	t.Parallel()
	c := panicTestCall()
	c.protected.Store(true)
	handled := false
	c.inbox.Push(message{run: func(context.Context) { panic("a fault of this test") }})
	c.inbox.Push(message{run: func(context.Context) { handled = true; c.end(call.Outcome{Reason: "caller_hangup"}) }})
	c.run(t.Context(), func(context.Context) { c.answered = time.Now() })
	if !handled || c.outcome.Reason != "caller_hangup" {
		t.Errorf("the message after the fault was handled: %v; the call ended with %+v", handled, c.outcome)
	}
}
