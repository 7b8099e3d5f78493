package trunk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"soniq/internal/platform/db"
)

// Route is a trunk that an outbound call can take, and the number to dial there.
type Route struct {
	Trunk Trunk
	Dial  string
}

// Routes returns the routes for a number in E.164, or for a short number of a country, by priority. OrderRoutes puts those
// first that suit the number shown.
func (s *Service) Routes(ctx context.Context, org, number, country string) ([]Route, error) {
	all, err := s.routableTrunks(ctx, org)
	if err != nil {
		return nil, err
	}
	var ways []Route
	for _, t := range all {
		if dial, why := t.takes(number, country); why == "" {
			ways = append(ways, Route{t, dial})
		}
	}
	return s.OrderRoutes(ways, ""), nil
}

// The reasons why a trunk has its place in the order of an outbound call, or no place.
const (
	Home        = "home"             // the number shown is one of this trunk
	Foreign     = "foreign_numbers"  // the trunk accepts numbers of other trunks
	ByPriority  = "priority"         // the call shows no number of a trunk
	Failover    = "failover"         // its carrier may refuse the number shown: tried after the others
	Down        = "down"             // it does not answer: tried last
	Disabled    = "disabled"         // excluded
	InboundOnly = "inbound_only"     // excluded by its direction
	NoRule      = "no_matching_rule" // excluded: it has prefix rules, and none matches
)

// takes returns the number to dial on a trunk for a number in E.164, or for a short number of a country. It returns the
// reason why the trunk is excluded, or "".
func (t Trunk) takes(number, country string) (dial, why string) {
	if t.Direction == "inbound" {
		return "", InboundOnly
	}
	rewrite := t.rewrite
	if !strings.HasPrefix(number, "+") {
		rewrite = func(number string) (string, bool) { return t.rewriteShort(number, country) }
	}
	dial, ok := rewrite(number)
	if !ok {
		return "", NoRule
	}
	return dial, ""
}

// place returns the rank of a trunk for a call that shows a number of the trunk home, and the reason. home is "" if the
// call shows no number of a trunk.
func (s *Service) place(t Trunk, home string) (rank int, why string) {
	switch {
	case s.health.isDown(t):
		return 3, Down
	case home == "":
		return 0, ByPriority
	case t.ID == home:
		return 0, Home
	case t.ForeignNumbers:
		return 1, Foreign
	}
	return 2, Failover
}

// OrderRoutes orders the routes of a call that shows a number of the trunk home: that trunk, then trunks that accept
// numbers of others, then the rest. Within each group they keep their order. Trunks that are down come last. They are
// still tried, because the state may be outdated.
func (s *Service) OrderRoutes(ways []Route, home string) []Route {
	slices.SortStableFunc(ways, func(a, b Route) int {
		first, _ := s.place(a.Trunk, home)
		second, _ := s.place(b.Trunk, home)
		return cmp.Compare(first, second)
	})
	return ways
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
	return s.OrderRoutes(ways, ""), nil
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
	best := longestMatch(t.PrefixRules, e164)
	if best == nil || best.Strip >= len(e164) {
		return "", false
	}
	return best.Prepend + e164[best.Strip:], true
}

// rewriteShort returns a short number of a country as the trunk is asked for it: as it was dialled, if the trunk takes
// numbers of the country. A rule that matches the digits themselves, such as 116, rewrites it.
func (t Trunk) rewriteShort(number, country string) (string, bool) {
	if len(t.PrefixRules) == 0 {
		return number, true
	}
	if r := longestMatch(t.PrefixRules, number); r != nil && r.Match != "" {
		return r.Prepend + number[min(r.Strip, len(number)):], r.Strip < len(number)
	}
	code := callingCode(country)
	return number, slices.ContainsFunc(t.PrefixRules, func(r PrefixRule) bool {
		return strings.HasPrefix(code, r.Match) || strings.HasPrefix(r.Match, code)
	})
}

// longestMatch returns the rule with the longest match of a number; nil if none matches.
func longestMatch(rules []PrefixRule, number string) (best *PrefixRule) {
	for i := range rules {
		r := &rules[i]
		if strings.HasPrefix(number, r.Match) && (best == nil || len(r.Match) > len(best.Match)) {
			best = r
		}
	}
	return best
}
