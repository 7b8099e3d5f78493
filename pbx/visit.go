package pbx

import "context"

// A Lead is where a caller is to be led, and why.
type Lead struct {
	Org, To    string
	Unanswered string
}

// A Script leads a caller.
type Script func(ctx context.Context, v *Visit)

// A Visit is a caller who is led.
type Visit struct{}
