package trunk

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/platform/db"
)

// A Way is a trunk an outbound call can take, and what to dial there.
type Way struct {
	Trunk Trunk
	Dial  string
}

// Route returns the ways for a number in E.164 in the order in which they are to be tried.
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

// EmergencyRoute returns the ways for an emergency number: trunks that are marked for it, and no others. The number
// is dialled as it is.
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

// upFirst puts trunks that are down behind all others. They are still tried: what we know may be old.
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

// ofOrg returns the organisation's enabled trunks by priority; cached. A sandbox has none: nothing in it reaches a
// carrier, emergency services least of all.
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

// rewrite applies the longest rule that matches; a trunk without rules takes every number as it is.
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
