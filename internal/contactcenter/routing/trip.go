package routing

import (
	"context"

	"soniq/internal/contactcenter/flow"
)

// flowContext holds the state of one caller since the script started. Flows to which the caller is routed later see
// the same state.
type trip struct {
	steps     int
	leads     int // how often the caller was routed
	variables map[string]any
	masked    map[string]bool // variables that are sent out only if a text names them
	contact   map[string]any  // nil: not looked up yet
	memory    map[string]any  // nil: not read yet
	closed    bool            // a business-hours step found the organisation closed
	forwarded map[string]bool // ids of users whose forwarding rule was applied
	masking   int             // how many of the flows that the caller is in mask keys
}

type tripKey struct{}

func withTrip(ctx context.Context) context.Context {
	return context.WithValue(ctx, tripKey{}, &trip{variables: map[string]any{}, masked: map[string]bool{}})
}

// flowContextOf returns the flow context of the caller. Without one it returns an empty context that allows no
// further step.
func tripOf(ctx context.Context) *trip {
	if t, ok := ctx.Value(tripKey{}).(*trip); ok {
		return t
	}
	return &trip{steps: flow.MaxSteps, variables: map[string]any{}, masked: map[string]bool{}}
}

// addForwarder records that the user's forwarding rule was applied to the call.
func (t *trip) forward(user string) {
	if t.forwarded == nil {
		t.forwarded = map[string]bool{}
	}
	t.forwarded[user] = true
}

// maxRoutes limits how often one caller is routed, such as from a flow to a queue to a flow.
const maxLeads = 100

// countRoute counts one more routing of the caller. It returns false if the limit of routes or of steps is exceeded.
func ledOn(ctx context.Context) bool {
	t := tripOf(ctx)
	t.leads++
	return t.leads <= maxLeads && step(ctx)
}

// countStep counts one more flow step of the caller. It returns false if flow.MaxSteps is exceeded.
func step(ctx context.Context) bool {
	t := tripOf(ctx)
	t.steps++
	return t.steps <= flow.MaxSteps
}
