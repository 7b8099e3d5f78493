// Package commandwait lets a request wait for the effect of a command on a call.
package commandwait

import (
	"context"
	"sync/atomic"

	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// Waiter waits for the effect of a command. Exactly one side decides whether the command takes effect: the
// call, or the waiter after its time limit. The API's answer and the call therefore agree.
type Waiter struct {
	timedOut <-chan struct{} // closed when the waiter's context ends
	answer   chan commandOutcome
	decided  atomic.Bool
}

type commandOutcome struct {
	result call.Result
	err    error
}

func New(ctx context.Context) *Waiter {
	return &Waiter{timedOut: ctx.Done(), answer: make(chan commandOutcome, 1)}
}

// Send answers the waiter. Only the first answer counts.
func (a *Waiter) Send(r call.Result, err error) {
	select {
	case a.answer <- commandOutcome{r, err}:
	default:
	}
}

// Expired returns a channel that is closed when the waiter's context ends.
func (a *Waiter) Expired() <-chan struct{} { return a.timedOut }

// Await returns the answer, or an action_timeout error if none came in time. If the call already decided to carry out
// the command, it waits for the write to finish.
func (a *Waiter) Await() (call.Result, error) {
	select {
	case o := <-a.answer:
		return o.result, o.err
	case <-a.timedOut:
	}
	if a.Decide() {
		return call.Result{}, TimeoutError()
	}
	o := <-a.answer
	return o.result, o.err
}

// Decide claims the decision. It returns false if the other side has decided already.
func (a *Waiter) Decide() bool { return a.decided.CompareAndSwap(false, true) }

// TimeoutError is the error for a command whose time limit has passed.
func TimeoutError() error {
	return op.Fail("action_timeout", "the other side has not confirmed in time; read the call to see what happened")
}
