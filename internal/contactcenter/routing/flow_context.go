package routing

import (
	"context"

	"soniq/internal/contactcenter/flow"
)

// FlowContext holds the state of one caller since the script started. Flows to which the caller is routed later see
// the same state.
type FlowContext struct {
	steps      int
	routes     int // how often the caller was routed
	Variables  map[string]any
	Masked     map[string]bool // variables that are sent out only if a text names them
	Contact    map[string]any  // nil: not looked up yet
	Memory     map[string]any  // nil: not read yet
	AfterHours bool            // a business-hours step found the organisation closed
	forwarders map[string]bool // ids of users whose forwarding rule was applied
	Budget     flow.Budget     // what the expressions of all its flows use up
	MaskDepth  int             // how many of the flows that the caller is in mask keys
	Sought     string          // missed_reason of a call whose caller was put through to a person and not answered; "": to nobody yet

	ReturnDepth int  // how many of the flows that the caller is in go on with the caller after an answer
	Returns     bool // the switch was told that the caller comes back after an answer

	AgentMessages int  // text messages that voice agents sent to the caller
	AgentCallback bool // a voice agent scheduled a callback to the caller
}

type flowContextKey struct{}

func withFlowContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, flowContextKey{}, &FlowContext{Variables: map[string]any{}, Masked: map[string]bool{}})
}

// FlowContextOf returns the flow context of the caller. Without one it returns an empty context that allows no
// further step.
func FlowContextOf(ctx context.Context) *FlowContext {
	if t, ok := ctx.Value(flowContextKey{}).(*FlowContext); ok {
		return t
	}
	return &FlowContext{steps: flow.MaxSteps, Variables: map[string]any{}, Masked: map[string]bool{}}
}

// addForwarder records that the user's forwarding rule was applied to the call.
func (t *FlowContext) addForwarder(user string) {
	if t.forwarders == nil {
		t.forwarders = map[string]bool{}
	}
	t.forwarders[user] = true
}

// maxRoutes limits how often one caller is routed, such as from a flow to a queue to a flow.
const maxRoutes = 100

// countRoute counts one more routing of the caller. It returns false if the limit of routes or of steps is exceeded.
func countRoute(ctx context.Context) bool {
	t := FlowContextOf(ctx)
	t.routes++
	return t.routes <= maxRoutes && CountStep(ctx)
}

// CountStep counts one more flow step of the caller. It returns false if flow.MaxSteps is exceeded.
func CountStep(ctx context.Context) bool {
	t := FlowContextOf(ctx)
	t.steps++
	return t.steps <= flow.MaxSteps
}
