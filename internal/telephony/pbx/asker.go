package pbx

import (
	"context"
	"sync/atomic"

	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// commandWaiter waits for the effect of a command. Exactly one side decides whether the command takes effect: the
// call, or the waiter after its time limit. The API's answer and the call therefore agree.
type asker struct {
	gone    <-chan struct{} // closed when the waiter's context ends
	answer  chan outcome
	settled atomic.Bool
}

type outcome struct {
	result call.Result
	err    error
}

func newAsker(ctx context.Context) *asker {
	return &asker{gone: ctx.Done(), answer: make(chan outcome, 1)}
}

// reply returns a reply that answers the waiter. Only the first answer counts.
func (a *asker) reply() reply {
	return reply{asker: a, to: func(r call.Result, err error) {
		select {
		case a.answer <- outcome{r, err}:
		default:
		}
	}}
}

// await returns the answer, or an action_timeout error if none came in time. If the call already decided to carry out
// the command, it waits for the write to finish.
func (a *asker) await() (call.Result, error) {
	select {
	case o := <-a.answer:
		return o.result, o.err
	case <-a.gone:
	}
	if a.settle() {
		return call.Result{}, unconfirmed()
	}
	o := <-a.answer
	return o.result, o.err
}

func (a *asker) settle() bool { return a.settled.CompareAndSwap(false, true) }

func unconfirmed() error {
	return op.Fail("action_timeout", "the other side has not confirmed in time; read the call to see what happened")
}

// decide reports whether the command may take effect now. It returns false if the waiter already returned a timeout.
func (r reply) settle() bool { return r.asker == nil || r.asker.settle() }

// expired returns a channel that is closed when the waiter's context ends. It is nil if the command has no waiter.
func (r reply) gone() <-chan struct{} {
	if r.asker == nil {
		return nil
	}
	return r.asker.gone
}

// isAwaited reports whether the waiter still waits. It is true if the command has no waiter.
func (r reply) wanted() bool {
	select {
	case <-r.gone():
		return false
	default:
		return true
	}
}
