package trunk

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"soniq/internal/platform/db"
)

// Explained is one trunk of an organisation in the order of an outbound call, or excluded from it. For an inbound call
// it is a trunk that takes calls from an address, or does not.
type Explained struct {
	TrunkID string  `json:"trunk_id" example:"trk_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Name    string  `json:"name"`
	Used    bool    `json:"used" doc:"false: the call never takes it"`
	Reason  string  `json:"reason" enum:"home,foreign_numbers,priority,failover,down,emergency,channels_full,calls_per_second,disabled,inbound_only,no_matching_rule,not_emergency_capable,sandbox,refused,source,other_source,after_login,outbound_only" doc:"Why it has this place, or is not used"`
	Dialled *string `json:"dialled" doc:"The number as this trunk is asked for it; null for inbound calls and where it is not used"`
}

// Reasons of a test of a route beside those of the order of trunks.
const (
	emergencyTrunk      = "emergency"
	channelsFull        = "channels_full"         // excluded: as many calls as it carries
	trunkCallsPerSecond = "calls_per_second"      // excluded: as many calls as it takes in a second
	notEmergencyCapable = "not_emergency_capable" // excluded from emergency calls
	sandboxed           = "sandbox"               // excluded: a sandbox reaches no carrier
	refusedBefore       = "refused"               // excluded: the call is refused before a trunk is chosen
	matchesSource       = "source"                // takes calls from the address
	otherSource         = "other_source"          // excluded: its calls come from other addresses
	afterLogin          = "after_login"           // excluded, except for a carrier that logs in
	outboundOnly        = "outbound_only"         // excluded by its direction
)

// Explain returns every trunk of an organisation for a planned call that shows a number of the trunk home: first those
// that are tried, in their order, then those that are not.
func (g *OutboundGate) Explain(ctx context.Context, org string, p Plan, home string) ([]Explained, error) {
	all, sandbox, err := g.trunks.everyTrunk(ctx, org)
	if err != nil {
		return nil, err
	}
	out, full := []Explained{}, []Explained{}
	for _, w := range p.Routes {
		if why := g.channelRefusal(w.Trunk, p.Emergency); why != "" {
			full = append(full, Explained{TrunkID: w.Trunk.ID, Name: w.Trunk.Name, Reason: why})
			continue
		}
		why := emergencyTrunk
		if !p.Emergency {
			_, why = g.trunks.place(w.Trunk, home)
		}
		out = append(out, Explained{w.Trunk.ID, w.Trunk.Name, true, why, &w.Dial})
	}
	out = append(out, full...)
	for _, t := range all {
		if !slices.ContainsFunc(out, func(x Explained) bool { return x.TrunkID == t.ID }) {
			out = append(out, Explained{TrunkID: t.ID, Name: t.Name, Reason: t.excluded(p, sandbox)})
		}
	}
	return out, nil
}

// everyTrunk returns all trunks of an organisation by priority, and whether it is a sandbox.
func (s *Service) everyTrunk(ctx context.Context, org string) (all []Trunk, sandbox bool, err error) {
	o, err := s.orgs.Get(ctx, org)
	if err != nil {
		return nil, false, fmt.Errorf("find organisation: %w", err)
	}
	all, err = read(ctx, s.db.Read(db.Detached(ctx)), `SELECT `+columns+` FROM trunks WHERE org_id = $1 ORDER BY priority, id`, org)
	if err != nil {
		return nil, false, fmt.Errorf("list trunks: %w", err)
	}
	return all, o.Sandbox(), nil
}

// channelRefusal returns the reason why AcquireChannel would not give a channel of a trunk now, or "".
func (g *OutboundGate) channelRefusal(t Trunk, emergency bool) string {
	if emergency {
		return ""
	}
	switch _, r := g.limits.check(Claim{Key: t.ID, Limit: t.ChannelLimit()}); r {
	case Allowed:
		return ""
	case CallsPerSecondExceeded:
		return trunkCallsPerSecond
	default:
		return channelsFull
	}
}

// excluded returns the reason why a call never takes a trunk.
func (t Trunk) excluded(p Plan, sandbox bool) string {
	switch {
	case !t.Enabled:
		return Disabled
	case sandbox:
		return sandboxed
	case p.Emergency:
		return notEmergencyCapable
	}
	_, why := t.takes(p.Number, p.Country)
	return cmp.Or(why, refusedBefore)
}

// ExplainSource returns every trunk of an organisation, and whether it takes calls from an address. Those that do come
// first.
func (s *Service) ExplainSource(ctx context.Context, org string, source netip.Addr) ([]Explained, error) {
	all, sandbox, err := s.everyTrunk(ctx, org)
	if err != nil {
		return nil, err
	}
	out := make([]Explained, 0, len(all))
	for _, t := range all {
		matches, err := s.MatchesSource(ctx, source, t.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, Explained{TrunkID: t.ID, Name: t.Name, Used: matches, Reason: t.sourceReason(matches, sandbox)})
	}
	slices.SortStableFunc(out, func(a, b Explained) int {
		switch {
		case a.Used == b.Used:
			return 0
		case a.Used:
			return -1
		}
		return 1
	})
	return out, nil
}

// sourceReason returns the reason why a trunk takes calls from an address or does not.
func (t Trunk) sourceReason(matches, sandbox bool) string {
	switch {
	case matches:
		return matchesSource
	case !t.Enabled:
		return Disabled
	case sandbox:
		return sandboxed
	case t.Direction == "outbound":
		return outboundOnly
	case t.Inbound.Username != nil:
		return afterLogin
	}
	return otherSource
}
