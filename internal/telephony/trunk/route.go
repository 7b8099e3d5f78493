package trunk

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/platform/db"
)

// Route is a trunk that an outbound call can take, and the number to dial there.
type Route struct {
	Trunk Trunk
	Dial  string
}

// Routes returns the routes for a number in E.164, in the order in which they are tried.
func (s *Service) Routes(ctx context.Context, org, e164 string) ([]Route, error) {
	all, err := s.routableTrunks(ctx, org)
	if err != nil {
		return nil, err
	}
	var ways []Route
	for _, t := range all {
		if dial, ok := t.rewrite(e164); ok {
			ways = append(ways, Route{t, dial})
		}
	}
	return s.healthyFirst(ways), nil
}

// EmergencyRoutes returns the routes for an emergency number: only trunks with emergency_capable. The number is
// dialled unchanged.
func (s *Service) EmergencyRoutes(ctx context.Context, org, number string) ([]Route, error) {
	all, err := s.routableTrunks(ctx, org)
	if err != nil {
		return nil, err
	}
	var ways []Route
	for _, t := range all {
		if t.EmergencyCapable {
			ways = append(ways, Route{t, number})
		}
	}
	return s.healthyFirst(ways), nil
}

// healthyFirst moves trunks that are down to the end. They are still tried, because the state may be outdated.
func (s *Service) healthyFirst(ways []Route) []Route {
	var up, down []Route
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
func (s *Service) routableTrunks(ctx context.Context, org string) ([]Trunk, error) {
	return s.trunksByOrg.Get(org, func() ([]Trunk, error) {
		o, err := s.orgs.Get(db.Detached(ctx), org)
		if err != nil {
			return nil, fmt.Errorf("find organisation: %w", err)
		}
		if o.Sandbox() {
			return nil, nil
		}
		all, err := enabledByPriority(ctx, s.db.Read(db.Detached(ctx)), org)
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
