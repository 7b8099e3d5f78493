package pbx

import (
	"context"
	"sync/atomic"

	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// An asker waits for the effect of a command. Whether it comes is settled once, by the call or by who has waited long enough: what
// the call does and what is answered agree.
type asker struct {
	gone    <-chan struct{} // closed when the answer is not waited for any more
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

// reply answers the asker; what comes after the first is dropped.
func (a *asker) reply() reply {
	return reply{asker: a, to: func(r call.Result, err error) {
		select {
		case a.answer <- outcome{r, err}:
		default:
		}
	}}
}

// await returns the answer, or that there was none in time. An effect that was settled before is waited for: it is being written down.
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

// settle says that the command takes effect now; false where who gave it has been told that it has none.
func (r reply) settle() bool { return r.asker == nil || r.asker.settle() }

// gone is closed when nobody waits any more; nil where nobody ever did.
func (r reply) gone() <-chan struct{} {
	if r.asker == nil {
		return nil
	}
	return r.asker.gone
}

// wanted reports whether somebody still waits, or nobody ever did.
func (r reply) wanted() bool {
	select {
	case <-r.gone():
		return false
	default:
		return true
	}
}
