package trunk

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Networks of trunks: which of them an organisation may use, and which are known to be its carrier's.

// Proofs of a network.
const (
	provedByOperator = "operator"
	provedByCall     = "call" // the caller acknowledged our answer, so its address is not forged
)

// provenNetwork is a network from which calls of an organisation come for certain.
type provenNetwork struct {
	org, proof string
	network    netip.Prefix
}

// checkNetworks refuses networks that overlap those of another organisation's trunks, unless the operator confirmed
// them. The refusal does not tell whose they are. Networks that the trunk had before are not checked again. Loopback
// addresses are not checked, because only the operator's own programs have them.
func (s *Service) checkNetworks(ctx context.Context, q db.Querier, t Trunk, old *Trunk) error {
	o, err := s.orgs.Get(ctx, t.OrgID)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	fresh := t.networks(nil)
	if old != nil {
		had := old.networks(nil)
		fresh = slices.DeleteFunc(fresh, func(p netip.Prefix) bool { return slices.Contains(had, p) })
	}
	fresh = slices.DeleteFunc(fresh, func(p netip.Prefix) bool { return p.Addr().IsLoopback() })
	if o.Sandbox() || len(fresh) == 0 {
		return nil
	}
	taken, err := s.foreignNetworks(ctx, q, t.OrgID, fresh)
	if err != nil || len(taken) == 0 {
		return err
	}
	var wrong []op.Violation
	for _, p := range taken {
		wrong = append(wrong, op.Field(t.fieldOf(p), "needs_confirmation", fmt.Sprintf(
			"calls from %s need a confirmation; the operator gives it by soniq admin trunks confirm --org %s --network %s", p, t.OrgID, p)))
	}
	return op.Invalid(wrong...)
}

// foreignNetworks returns those of the networks that overlap a network of another organisation and are not confirmed.
func (s *Service) foreignNetworks(ctx context.Context, q db.Querier, org string, all []netip.Prefix) (taken []netip.Prefix, err error) {
	// tenant: networks of all organisations are compared; only whether there is an overlap is told
	others, err := read(ctx, q, `SELECT `+columns+` FROM trunks WHERE org_id <> $1 AND `+notSandbox, org)
	if err != nil {
		return nil, err
	}
	proven, err := provenNetworks(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		overlaps := func(t Trunk) bool { return slices.ContainsFunc(t.networks(nil), p.Overlaps) }
		confirmed := func(x provenNetwork) bool { return x.org == org && x.proof == provedByOperator && covers(x.network, p) }
		if slices.ContainsFunc(others, overlaps) && !slices.ContainsFunc(proven, confirmed) {
			taken = append(taken, p)
		}
	}
	return taken, nil
}

// fieldOf returns the field of the request that named a network.
func (t Trunk) fieldOf(p netip.Prefix) string {
	names := func(text string) bool {
		n, err := network(text)
		return err == nil && n == p
	}
	switch {
	case slices.ContainsFunc(t.AllowedIPs, names):
		return "allowed_ips"
	case slices.ContainsFunc(t.Inbound.AllowedIPs, names):
		return "inbound.allowed_ips"
	}
	return "host"
}

// covers reports whether all addresses of a network belong to the wider one.
func covers(wide, p netip.Prefix) bool { return wide.Bits() <= p.Bits() && wide.Contains(p.Addr()) }

// provenNetworks returns the networks of all organisations that are known to be their carriers'.
func provenNetworks(ctx context.Context, q db.Querier) (all []provenNetwork, err error) {
	// tenant: the source address of a call determines the organisation
	const text = `SELECT org_id, network, proof FROM trunk_networks ORDER BY org_id, network`
	rows, err := q.Query(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("read networks of trunks: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var x provenNetwork
		var written string
		if err := rows.Scan(&x.org, &written, &x.proof); err != nil {
			return nil, err
		}
		if x.network, err = netip.ParsePrefix(written); err != nil {
			return nil, fmt.Errorf("read networks of trunks: %w", err)
		}
		all = append(all, x)
	}
	return all, rows.Err()
}

// Confirm stores that calls of an organisation come from a network, also if other organisations use it. The operator
// calls it by the CLI. It returns the network in its canonical form.
func (s *Service) Confirm(ctx context.Context, orgID, text string) (string, error) {
	p, err := network(strings.Trim(text, "[]"))
	if err != nil {
		return "", op.Invalid(op.Field("network", "invalid_network", text+" is neither an address nor a network such as 192.0.2.0/24"))
	}
	return p.String(), s.writeNetwork(ctx, provenNetwork{orgID, provedByOperator, p})
}

// maxProvenAddresses bounds how many single addresses calls prove for one organisation.
const maxProvenAddresses = 256

// CallEstablished records that an organisation's trunk carried a call whose caller acknowledged our answer. Its source
// is then known to belong to the trunk. It costs a map look-up if that is known already.
func (s *Service) CallEstablished(ctx context.Context, org, trunkID string, source netip.Addr) error {
	source = source.Unmap().WithZone("")
	known, err := s.sourceTable(ctx)
	if err != nil || !source.IsValid() || known.exempts(source) || !containsTrunk(known.sources(source), trunkID) ||
		known.provenCount[org] >= maxProvenAddresses {
		return err
	}
	return s.writeNetwork(ctx, provenNetwork{org, provedByCall, netip.PrefixFrom(source, source.BitLen())})
}

func (s *Service) writeNetwork(ctx context.Context, x provenNetwork) error {
	const text = `INSERT INTO trunk_networks (org_id, network, proof, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (org_id, network) DO UPDATE SET proof = CASE WHEN trunk_networks.proof = 'operator' THEN 'operator' ELSE $3 END`
	err := s.db.Tx(ctx, func(tx db.Querier) error {
		db.OnCommit(tx, func() { s.bus.Publish(Changed, sourceTableKey) })
		_, err := tx.Exec(ctx, text, x.org, x.network.String(), x.proof, db.At(s.now()))
		return err
	})
	if db.IsForeignKey(err) {
		return fmt.Errorf("there is no organisation %s", x.org)
	}
	if err != nil {
		return fmt.Errorf("store network of trunk: %w", err)
	}
	return nil
}

// Exempt reports whether a source is never banned: the operator confirmed it, or it carried a call of a trunk. It
// must still belong to an enabled trunk.
func (s *Service) Exempt(ctx context.Context, a netip.Addr) (bool, error) {
	known, err := s.sourceTable(ctx)
	return err == nil && known.exempts(a.Unmap().WithZone("")), err
}

// SharedSource reports whether calls of a trunk come from addresses that trunks of other organisations use too. The
// number alone then determines whose call it is.
func (s *Service) SharedSource(ctx context.Context, orgID, trunkID string) (bool, error) {
	known, err := s.sourceTable(ctx)
	return err == nil && known.shared(orgID, trunkID), err
}
