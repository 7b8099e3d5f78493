package trunk

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"soniq/internal/platform/db"
)

// sourceIndex finds the trunks of an IP address by longest prefix.
type sourceIndex struct {
	ipv4Lengths, ipv6Lengths []int // prefix lengths in use for IPv4 and IPv6, longest first
	trunks                   map[netip.Prefix][]Source
}

// Source names the trunk whose carrier sends from an address.
type Source struct{ OrgID, TrunkID string }

// BySource returns the trunk whose carrier sends from the address; ok is false if there is none. If trunks of several
// organisations use the same carrier, it returns the oldest; the dialled number then determines the organisation.
func (s *Service) BySource(ctx context.Context, a netip.Addr) (t Source, ok bool, err error) {
	all, err := s.sourcesOf(ctx, a)
	if err != nil || len(all) == 0 {
		return Source{}, false, err
	}
	return all[0], true, nil
}

// SameSource reports whether a call over trunk a may as well have come over trunk b, because both use the same
// carrier address.
func (s *Service) SameSource(ctx context.Context, a, b string) (bool, error) {
	known, err := s.sourceTable(ctx)
	if err != nil || a == b {
		return a == b, err
	}
	for _, group := range known.trunks {
		if containsTrunk(group, a) && containsTrunk(group, b) {
			return true, nil
		}
	}
	return false, nil
}

func containsTrunk(group []Source, id string) bool {
	for _, t := range group {
		if t.TrunkID == id {
			return true
		}
	}
	return false
}

func (s *Service) sourcesOf(ctx context.Context, a netip.Addr) ([]Source, error) {
	known, err := s.sourceTable(ctx)
	if err != nil {
		return nil, err
	}
	a = a.Unmap().WithZone("")
	lengths := known.ipv4Lengths
	if a.Is6() {
		lengths = known.ipv6Lengths
	}
	for _, n := range lengths {
		p, _ := a.Prefix(n)
		if found := known.trunks[p]; len(found) > 0 {
			return found, nil
		}
	}
	return nil, nil
}

// sourceTableTimeout limits the time to read the table of source addresses.
const sourceTableTimeout = 5 * time.Second

// sourceTable returns the index of all trunks from the cache. It is read as a whole, because every INVITE needs it
// and it is small.
func (s *Service) sourceTable(ctx context.Context) (*sourceIndex, error) {
	return s.sources.Get(sourceTableKey, func() (*sourceIndex, error) {
		ctx, cancel := context.WithTimeout(ctx, sourceTableTimeout)
		defer cancel()
		all, err := enabled(ctx, s.db.Read(db.Detached(ctx)))
		if err != nil {
			return nil, fmt.Errorf("read sources of trunks: %w", err)
		}
		return buildSourceIndex(all, s.hostAddresses.addresses), nil
	})
}

func buildSourceIndex(all []Trunk, behind func(Trunk) []netip.Addr) *sourceIndex {
	t := &sourceIndex{trunks: map[netip.Prefix][]Source{}}
	var four, six [129]bool
	for _, trunk := range all {
		for _, p := range trunk.networks(behind(trunk)) {
			t.trunks[p] = append(t.trunks[p], Source{trunk.OrgID, trunk.ID})
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
