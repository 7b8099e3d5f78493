package routing

import (
	"context"

	"soniq/internal/contactcenter/flow"
)

// flowContext holds the state of one caller since the script started. Flows to which the caller is routed later see
// the same state.
type flowContext struct {
	steps      int
	routes     int // how often the caller was routed
	variables  map[string]any
	masked     map[string]bool // variables that are sent out only if a text names them
	contact    map[string]any  // nil: not looked up yet
	memory     map[string]any  // nil: not read yet
	afterHours bool            // a business-hours step found the organisation closed
	forwarders map[string]bool // ids of users whose forwarding rule was applied
	maskDepth  int             // how many of the flows that the caller is in mask keys
}

type flowContextKey struct{}

func withFlowContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, flowContextKey{}, &flowContext{variables: map[string]any{}, masked: map[string]bool{}})
}

// flowContextOf returns the flow context of the caller. Without one it returns an empty context that allows no
// further step.
func flowContextOf(ctx context.Context) *flowContext {
	if t, ok := ctx.Value(flowContextKey{}).(*flowContext); ok {
		return t
	}
	return &flowContext{steps: flow.MaxSteps, variables: map[string]any{}, masked: map[string]bool{}}
}

// addForwarder records that the user's forwarding rule was applied to the call.
func (t *flowContext) addForwarder(user string) {
	if t.forwarders == nil {
		t.forwarders = map[string]bool{}
	}
	t.forwarders[user] = true
}

// maxRoutes limits how often one caller is routed, such as from a flow to a queue to a flow.
const maxRoutes = 100

// countRoute counts one more routing of the caller. It returns false if the limit of routes or of steps is exceeded.
func countRoute(ctx context.Context) bool {
	t := flowContextOf(ctx)
	t.routes++
	return t.routes <= maxRoutes && countStep(ctx)
}

// countStep counts one more flow step of the caller. It returns false if flow.MaxSteps is exceeded.
func countStep(ctx context.Context) bool {
	t := flowContextOf(ctx)
	t.steps++
	return t.steps <= flow.MaxSteps
}
