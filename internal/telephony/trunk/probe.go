package trunk

import (
	"context"
	"fmt"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// TestResult holds the result of an OPTIONS probe that was requested by the API.
type TestResult struct {
	OptionsMS  *int    `json:"options_ms" doc:"How long its answer took; null where there was none"`
	Registered *bool   `json:"registered" doc:"null where the trunk does not register"`
	Error      *string `json:"error"`
}

// Test probes a trunk with OPTIONS at once and returns the result. The probe counts for the health of the trunk like
// any other.
func (s *Service) Test(ctx context.Context, in *OneIn) (*op.Out[TestResult], error) {
	t, err := get(ctx, s.db.Read(ctx), access.Org(ctx), in.ID)
	if err != nil {
		return nil, getError(err)
	}
	if s.prober == nil || !t.Enabled {
		return nil, op.State("the trunk is disabled; enable it first", "disabled")
	}
	if o, err := s.orgs.Get(ctx, t.OrgID); err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	} else if o.Sandbox() {
		why := "a sandbox reaches no carrier; test the trunk with a live key"
		return op.OK(TestResult{Error: &why})
	}
	rtt, err := s.prober.Probe(ctx, t)
	s.RecordProbe(t.ID, rtt, err)
	var r TestResult
	if err != nil {
		why := err.Error()
		r.Error = &why
	} else {
		ms := int(rtt.Milliseconds())
		r.OptionsMS = &ms
	}
	if s.health.fillStatus(&t); t.Registration != nil {
		yes := t.Registration.Status == "registered"
		r.Registered = &yes
	}
	return op.OK(r)
}
