package routing

import (
	"context"

	"soniq/internal/contactcenter/flow"
)

// A trip is the way of one caller from the beginning of a visit: what was found out on it goes along from flow to flow.
type trip struct {
	steps     int
	leads     int // how often they were led on
	variables map[string]any
	masked    map[string]bool // variables that are told nobody who does not ask for them by name
	contact   map[string]any  // nil: nobody was looked up
	memory    map[string]any  // nil: not read
	closed    bool            // led as a caller who calls while closed
	forwarded map[string]bool // users in whose name the caller was led elsewhere
	masking   int             // flows the caller is in that keep keys to themselves
}

type tripKey struct{}

func withTrip(ctx context.Context) context.Context {
	return context.WithValue(ctx, tripKey{}, &trip{variables: map[string]any{}, masked: map[string]bool{}})
}

// tripOf is the trip of the caller who is led.
func tripOf(ctx context.Context) *trip {
	if t, ok := ctx.Value(tripKey{}).(*trip); ok {
		return t
	}
	return &trip{steps: flow.MaxSteps, variables: map[string]any{}, masked: map[string]bool{}}
}

// forward notes that a user has the caller led elsewhere.
func (t *trip) forward(user string) {
	if t.forwarded == nil {
		t.forwarded = map[string]bool{}
	}
	t.forwarded[user] = true
}

// maxLeads bounds how often a caller is led on, from flows to queues to flows.
const maxLeads = 100

// ledOn counts that the caller is led on once more; false where it was too often.
func ledOn(ctx context.Context) bool {
	t := tripOf(ctx)
	t.leads++
	return t.leads <= maxLeads && step(ctx)
}

// step counts one more step of the caller's trip; false where there were too many.
func step(ctx context.Context) bool {
	t := tripOf(ctx)
	t.steps++
	return t.steps <= flow.MaxSteps
}
