package command

import "context"

type interruptKey struct{}

// WithInterrupt returns a context with a channel that receives each SIGINT after the first one. A command that does not receive from it
// is ended by them.
func WithInterrupt(ctx context.Context, again <-chan struct{}) context.Context {
	return context.WithValue(ctx, interruptKey{}, again)
}

// Interrupt returns the channel of WithInterrupt. It is nil if the context has none.
func Interrupt(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(interruptKey{}).(<-chan struct{})
	return c
}
