package trunk

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/db"
)

// sourceIndex finds the trunks of an IP address.
type sourceIndex struct {
	ipv4Lengths, ipv6Lengths []int // prefix lengths in use for IPv4 and IPv6, longest first
	trunks                   map[netip.Prefix][]entry
	registering              map[string]bool // IDs of the trunks that register with their carrier
	referring                map[string]bool // IDs of the trunks whose peer may transfer calls
	proven                   map[netip.Prefix][]provenNetwork
	provenLengths            []int          // prefix lengths of proven
	provenCount              map[string]int // proven networks by organisation
}

// entry is a trunk at one of its networks.
type entry struct {
	Source
	resolved bool // an address that DNS returned for the trunk's host name
}

// Source names the trunk whose carrier sends from an address.
type Source struct{ OrgID, TrunkID string }

// BySource returns a trunk whose carrier sends from the address; ok is false if there is none. If several trunks match,
// it returns the one with the longest prefix, then the oldest. The dialled number then determines the organisation:
// see MatchesSource.
func (s *Service) BySource(ctx context.Context, a netip.Addr) (t Source, ok bool, err error) {
	known, err := s.sourceTable(ctx)
	if err != nil {
		return Source{}, false, err
	}
	all := known.sources(a)
	if len(all) == 0 {
		return Source{}, false, nil
	}
	return known.preferred(all), true, nil
}

// Registers reports whether a trunk registers with its carrier, from the cache. A disabled or unknown trunk does not.
func (s *Service) Registers(ctx context.Context, id string) (bool, error) {
	known, err := s.sourceTable(ctx)
	if err != nil {
		return false, err
	}
	return known.registering[id], nil
}

// AllowsRefer reports whether the peer of a trunk may transfer calls, from the cache.
func (s *Service) AllowsRefer(ctx context.Context, id string) (bool, error) {
	known, err := s.sourceTable(ctx)
	if err != nil {
		return false, err
	}
	return known.referring[id], nil
}

// MatchesSource reports whether calls of a trunk may come from an address.
func (s *Service) MatchesSource(ctx context.Context, a netip.Addr, trunkID string) (bool, error) {
	known, err := s.sourceTable(ctx)
	return err == nil && containsTrunk(known.sources(a), trunkID), err
}

func containsTrunk(group []Source, id string) bool {
	return slices.ContainsFunc(group, func(t Source) bool { return t.TrunkID == id })
}

// sources returns all trunks that match an address, whatever the length of their prefixes, the longest first. What DNS returned for a
// trunk's host does not count where another organisation lists the address itself. The owner of a name may let it point anywhere.
func (x *sourceIndex) sources(a netip.Addr) (all []Source) {
	a = a.Unmap().WithZone("")
	lengths := x.ipv4Lengths
	if a.Is6() {
		lengths = x.ipv6Lengths
	}
	var resolved []Source
	for _, n := range lengths {
		p, _ := a.Prefix(n)
		for _, e := range x.trunks[p] {
			switch {
			case e.resolved && !x.confirmed(e.OrgID, a):
				resolved = append(resolved, e.Source)
			case !slices.Contains(all, e.Source):
				all = append(all, e.Source)
			}
		}
	}
	listed := slices.Clone(all)
	for _, e := range resolved {
		foreign := func(other Source) bool { return other.OrgID != e.OrgID }
		if !slices.Contains(all, e) && !slices.ContainsFunc(listed, foreign) {
			all = append(all, e)
		}
	}
	return all
}

// preferred returns the trunk to which a call is recorded if its number belongs to no organisation: the first one if all belong
// to one organisation, else the oldest.
func (x *sourceIndex) preferred(all []Source) Source {
	oldest := all[0]
	for _, t := range all[1:] {
		if t.OrgID != all[0].OrgID && t.TrunkID < oldest.TrunkID {
			oldest = t
		}
	}
	return oldest
}

// provenAt returns the proven networks that an address belongs to.
func (x *sourceIndex) provenAt(a netip.Addr) (all []provenNetwork) {
	for _, n := range x.provenLengths {
		if n <= a.BitLen() {
			p, _ := a.Prefix(n)
			all = append(all, x.proven[p]...)
		}
	}
	return all
}

// confirmed reports whether the operator confirmed that calls of an organisation come from an address.
func (x *sourceIndex) confirmed(org string, a netip.Addr) bool {
	return slices.ContainsFunc(x.provenAt(a), func(p provenNetwork) bool { return p.org == org && p.proof == provedByOperator })
}

// exempts reports whether an address was proven for an organisation whose trunk it still belongs to.
func (x *sourceIndex) exempts(a netip.Addr) bool {
	proven := x.provenAt(a)
	if len(proven) == 0 {
		return false
	}
	all := x.sources(a)
	return slices.ContainsFunc(proven, func(p provenNetwork) bool {
		return slices.ContainsFunc(all, func(t Source) bool { return t.OrgID == p.org })
	})
}

// shared reports whether another organisation's trunk matches one of the trunk's networks.
func (x *sourceIndex) shared(org, trunkID string) bool {
	for p, group := range x.trunks {
		if p.Addr().IsLoopback() || !slices.ContainsFunc(group, func(e entry) bool { return e.TrunkID == trunkID }) {
			continue
		}
		for other, theirs := range x.trunks {
			if other.Overlaps(p) && slices.ContainsFunc(theirs, func(e entry) bool { return e.OrgID != org && x.counts(e, p, org) }) {
				return true
			}
		}
	}
	return false
}

// counts reports whether an entry of another organisation is in effect at a network of ours.
func (x *sourceIndex) counts(e entry, at netip.Prefix, org string) bool {
	listed := slices.ContainsFunc(x.trunks[at], func(ours entry) bool { return ours.OrgID == org && !ours.resolved })
	return !e.resolved || !listed || x.confirmed(e.OrgID, at.Addr())
}

// sourceTableTimeout limits the time to read the table of source addresses.
const sourceTableTimeout = time.Second

// sourceTable returns the index of all trunks from the cache. It is read as a whole, because every INVITE needs it
// and it is small.
func (s *Service) sourceTable(ctx context.Context) (*sourceIndex, error) {
	return s.sources.Get(sourceTableKey, func() (*sourceIndex, error) {
		ctx, cancel := context.WithTimeout(ctx, sourceTableTimeout)
		defer cancel()
		all, err := enabled(ctx, s.db.Read(db.Detached(ctx)))
		var proven []provenNetwork
		if err == nil {
			proven, err = provenNetworks(ctx, s.db.Read(db.Detached(ctx)))
		}
		last := s.lastSources.Load()
		switch {
		case err != nil && last == nil:
			return nil, fmt.Errorf("read sources of trunks: %w", err)
		case err != nil: // the database does not answer: what was read last stays valid
			return last, nil
		}
		index := buildSourceIndex(all, s.hostAddresses.addresses, proven)
		s.lastSources.Store(index)
		return index, nil
	})
}

func buildSourceIndex(all []Trunk, behind func(Trunk) []netip.Addr, proven []provenNetwork) *sourceIndex {
	t := &sourceIndex{trunks: map[netip.Prefix][]entry{}, registering: map[string]bool{}, referring: map[string]bool{},
		proven: map[netip.Prefix][]provenNetwork{}, provenCount: map[string]int{}}
	var four, six, proved [129]bool
	for _, x := range proven {
		t.provenCount[x.org]++
		t.proven[x.network] = append(t.proven[x.network], x)
		proved[x.network.Bits()] = true
	}
	t.provenLengths = prefixLengths(proved)
	for _, trunk := range all {
		if trunk.Kind == "register" {
			t.registering[trunk.ID] = true
		}
		if trunk.Kind == "peer" && trunk.AllowRefer {
			t.referring[trunk.ID] = true
		}
		if trunk.Direction == "outbound" {
			continue // nobody calls by it
		}
		listed := trunk.networks(nil)
		for _, p := range trunk.networks(behind(trunk)) {
			t.trunks[p] = append(t.trunks[p], entry{Source{trunk.OrgID, trunk.ID}, !slices.Contains(listed, p)})
			if p.Addr().Is4() {
				four[p.Bits()] = true
			} else {
				six[p.Bits()] = true
			}
		}
	}
	t.ipv4Lengths, t.ipv6Lengths = prefixLengths(four), prefixLengths(six)
	return t
}

// prefixLengths returns the prefix lengths in use, longest first.
func prefixLengths(used [129]bool) []int {
	var all []int
	for n := 128; n >= 0; n-- {
		if used[n] {
			all = append(all, n)
		}
	}
	return all
}

// networks returns all networks from which the carrier's calls may come, each once. The parameter has the addresses
// of its host name.
func (t Trunk) networks(behind []netip.Addr) []netip.Prefix {
	var all []netip.Prefix
	seen := map[netip.Prefix]bool{}
	texts := append(append([]string{}, t.AllowedIPs...), t.Inbound.AllowedIPs...)
	for _, text := range append(texts, strings.Trim(t.Host, "[]")) {
		if p, err := network(text); err == nil && !seen[p] {
			seen[p] = true
			all = append(all, p)
		}
	}
	for _, a := range behind {
		if p := netip.PrefixFrom(a, a.BitLen()); !seen[p] {
			seen[p] = true
			all = append(all, p)
		}
	}
	return all
}

// network parses an address or a CIDR network.
func network(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}
