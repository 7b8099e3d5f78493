package trunk

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/platform/db"
)

// Route is a trunk that an outbound call can take, and the number to dial there.
type Way struct {
	Trunk Trunk
	Dial  string
}

// Routes returns the routes for a number in E.164, in the order in which they are tried.
func (s *Service) Route(ctx context.Context, org, e164 string) ([]Way, error) {
	all, err := s.ofOrg(ctx, org)
	if err != nil {
		return nil, err
	}
	var ways []Way
	for _, t := range all {
		if dial, ok := t.rewrite(e164); ok {
			ways = append(ways, Way{t, dial})
		}
	}
	return s.upFirst(ways), nil
}

// EmergencyRoutes returns the routes for an emergency number: only trunks with emergency_capable. The number is
// dialled unchanged.
func (s *Service) EmergencyRoute(ctx context.Context, org, number string) ([]Way, error) {
	all, err := s.ofOrg(ctx, org)
	if err != nil {
		return nil, err
	}
	var ways []Way
	for _, t := range all {
		if t.EmergencyCapable {
			ways = append(ways, Way{t, number})
		}
	}
	return s.upFirst(ways), nil
}

// healthyFirst moves trunks that are down to the end. They are still tried, because the state may be outdated.
func (s *Service) upFirst(ways []Way) []Way {
	var up, down []Way
	for _, w := range ways {
		if s.health.isDown(w.Trunk) {
			down = append(down, w)
		} else {
			up = append(up, w)
		}
	}
	return append(up, down...)
}

// routableTrunks returns the organisation's enabled trunks by priority, from the cache. A sandbox has none, because
// it must not reach a carrier or an emergency service.
func (s *Service) ofOrg(ctx context.Context, org string) ([]Trunk, error) {
	return s.byOrg.Get(org, func() ([]Trunk, error) {
		o, err := s.orgs.Get(db.Detached(ctx), org)
		if err != nil {
			return nil, fmt.Errorf("find organisation: %w", err)
		}
		if o.Sandbox() {
			return nil, nil
		}
		all, err := enabledOf(ctx, s.db.Read(db.Detached(ctx)), org)
		if err != nil {
			return nil, fmt.Errorf("find trunks: %w", err)
		}
		return all, nil
	})
}

// rewrite applies the longest rule that matches. A trunk without rules accepts every number unchanged.
func (t Trunk) rewrite(e164 string) (string, bool) {
	if len(t.PrefixRules) == 0 {
		return e164, true
	}
	var best *PrefixRule
	for i := range t.PrefixRules {
		r := &t.PrefixRules[i]
		if strings.HasPrefix(e164, r.Match) && (best == nil || len(r.Match) > len(best.Match)) {
			best = r
		}
	}
	if best == nil || best.Strip >= len(e164) {
		return "", false
	}
	return best.Prepend + e164[best.Strip:], true
}
