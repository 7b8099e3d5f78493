package command

import (
	"context"
	"sync/atomic"
)

// Interrupts passes each SIGINT after the first one to the command. The zero value passes none.
type Interrupts struct {
	wanted atomic.Bool
	again  chan struct{}
}

// NewInterrupts returns an Interrupts that no command waits for yet.
func NewInterrupts() *Interrupts { return &Interrupts{again: make(chan struct{}, 1)} }

// Pass passes a SIGINT on. It returns false if the command does not wait for it, or has not reacted to the one before.
func (i *Interrupts) Pass() bool {
	if !i.wanted.Load() {
		return false
	}
	select {
	case i.again <- struct{}{}:
		return true
	default:
		return false
	}
}

type interruptKey struct{}

// WithInterrupts returns a context for Interrupt.
func WithInterrupts(ctx context.Context, i *Interrupts) context.Context {
	return context.WithValue(ctx, interruptKey{}, i)
}

// Interrupt returns the channel that receives each SIGINT after the first one. Without it the second one ends the process. The channel is
// nil if the context has no Interrupts.
func Interrupt(ctx context.Context) <-chan struct{} {
	i, ok := ctx.Value(interruptKey{}).(*Interrupts)
	if !ok {
		return nil
	}
	i.wanted.Store(true)
	return i.again
}
