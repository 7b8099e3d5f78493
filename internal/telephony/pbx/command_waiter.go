package pbx

import (
	"context"
	"sync/atomic"

	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// commandWaiter waits for the effect of a command. Exactly one side decides whether the command takes effect: the
// call, or the waiter after its time limit. The API's answer and the call therefore agree.
type commandWaiter struct {
	timedOut <-chan struct{} // closed when the waiter's context ends
	answer   chan commandOutcome
	decided  atomic.Bool
}

type commandOutcome struct {
	result call.Result
	err    error
}

func newCommandWaiter(ctx context.Context) *commandWaiter {
	return &commandWaiter{timedOut: ctx.Done(), answer: make(chan commandOutcome, 1)}
}

// reply returns a reply that answers the waiter. Only the first answer counts.
func (a *commandWaiter) reply() commandReply {
	return commandReply{waiter: a, to: func(r call.Result, err error) {
		select {
		case a.answer <- commandOutcome{r, err}:
		default:
		}
	}}
}

// await returns the answer, or an action_timeout error if none came in time. If the call already decided to carry out
// the command, it waits for the write to finish.
func (a *commandWaiter) await() (call.Result, error) {
	select {
	case o := <-a.answer:
		return o.result, o.err
	case <-a.timedOut:
	}
	if a.decide() {
		return call.Result{}, actionTimeoutError()
	}
	o := <-a.answer
	return o.result, o.err
}

func (a *commandWaiter) decide() bool { return a.decided.CompareAndSwap(false, true) }

func actionTimeoutError() error {
	return op.Fail("action_timeout", "the other side has not confirmed in time; read the call to see what happened")
}

// decide reports whether the command may take effect now. It returns false if the waiter already returned a timeout.
func (r commandReply) decide() bool { return r.waiter == nil || r.waiter.decide() }

// expired returns a channel that is closed when the waiter's context ends. It is nil if the command has no waiter.
func (r commandReply) expired() <-chan struct{} {
	if r.waiter == nil {
		return nil
	}
	return r.waiter.timedOut
}

// isAwaited reports whether the waiter still waits. It is true if the command has no waiter.
func (r commandReply) isAwaited() bool {
	select {
	case <-r.expired():
		return false
	default:
		return true
	}
}
