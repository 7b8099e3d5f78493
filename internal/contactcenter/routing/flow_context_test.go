package routing

import (
	"context"
	"testing"

	"soniq/internal/contactcenter/flow"
)

func TestFlowContext_LimitsRoutesAndSteps(t *testing.T) {
	t.Parallel()
	ctx := withFlowContext(t.Context())
	n := 0
	for countRoute(ctx) {
		n++
	}
	if n != maxRoutes {
		t.Errorf("led on %d times, want %d", n, maxRoutes)
	}
	for ctx, n = withFlowContext(t.Context()), 0; CountStep(ctx); n++ {
	}
	if n != flow.MaxSteps || CountStep(context.Background()) {
		t.Errorf("%d steps, want %d; and none without a trip", n, flow.MaxSteps)
	}
}
