package number

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Several organisations may enter the same number, each on a trunk of its own. The trunks that match the source of a
// call decide which of the entries it is for. If several match, the entry that was proven last has it.

// awaitingProof is the detail of an entry on a trunk whose addresses other organisations use too.
const awaitingProof = "waits for a call to it over its trunk, or for the operator (soniq numbers confirm)"

// isClaim reports whether a number was entered by its organisation and is not proven. Pending orders are none.
func (n Number) isClaim() bool { return n.Status == "pending" && n.TrunkID != nil && n.account == "" }

// admit sets whether a number that the organisation entered is in use at once. It is, unless calls of its trunk come
// from addresses that other organisations use too: it has to be proven then. The answer does not depend on whether
// another organisation has the number. Numbers of the organisation's stock are proven, because the operator added them.
func (s *Service) admit(ctx context.Context, q db.Querier, n *Number) error {
	trunk, err := stockTrunk(ctx, q, n.OrgID, n.Number)
	if err == nil && trunk == *n.TrunkID {
		n.provenAt = db.At(s.now())
		return nil
	}
	if err != nil && !db.IsNone(err) {
		return fmt.Errorf("find number in stock: %w", err)
	}
	shared, err := s.config.Trunks.SharedSource(ctx, n.OrgID, *n.TrunkID)
	if err != nil || !shared {
		return err
	}
	detail := awaitingProof
	n.Status, n.StatusDetail, n.AllocatedAt = "pending", &detail, db.Time{}
	return nil
}

// readmit judges a number again that moved to another trunk.
func (s *Service) readmit(ctx context.Context, q db.Querier, n *Number) error {
	if n.TrunkID == nil || n.account != "" || n.Status != "active" && !n.isClaim() {
		return nil
	}
	n.provenAt, n.StatusDetail, n.Status = db.Time{}, nil, "active"
	if n.AllocatedAt.IsZero() {
		n.AllocatedAt = db.At(s.now())
	}
	return s.admit(ctx, q, n)
}

// Call says where an inbound call came from.
type Call struct {
	TrunkID string     // of a source address, or of the carrier that authenticated
	Source  netip.Addr // zero if unknown
}

// Route returns the number that was dialled, of any organisation, if the call may have come over its trunk; ok is false
// otherwise. The first call to a number proves it. It runs for every inbound call. The entries are cached for cacheLife
// and shared: callers must not change the result.
func (s *Service) Route(ctx context.Context, e164 string, c Call) (n *Number, ok bool, err error) {
	all, err := s.entries(ctx, e164)
	if err == nil {
		n, err = s.match(ctx, all, c)
	}
	if n == nil || err != nil {
		return nil, false, err
	}
	if n.provenAt.IsZero() {
		if err := s.prove(db.Detached(ctx), *n); err != nil {
			return nil, false, err
		}
	}
	return n, true, nil
}

// entries returns the entries of a number, of all organisations, from the cache.
func (s *Service) entries(ctx context.Context, e164 string) ([]Number, error) {
	all, err := s.routes.Get(e164, func() ([]Number, error) { return byNumber(ctx, s.db.Read(db.Detached(ctx)), e164) })
	if err != nil {
		return nil, fmt.Errorf("route number: %w", err)
	}
	return all, nil
}

// match returns the entry to which a call belongs; nil if there is none.
func (s *Service) match(ctx context.Context, all []Number, c Call) (*Number, error) {
	var found []*Number
	for i := range all {
		if ok, err := s.mayBeFor(ctx, &all[i], c); err != nil {
			return nil, err
		} else if ok {
			found = append(found, &all[i])
		}
	}
	return lastProven(found), nil
}

// The reasons why a call to a number is not for an organisation.
const (
	NotOurs       = "not_your_number"
	OtherTrunk    = "other_trunk"    // the trunk of the number takes no calls from there
	AwaitingProof = "awaiting_proof" // nobody knows yet whose number it is
	NotRoutedHere = "not_routed_here"
)

// Preview returns the number of an organisation that a call would reach, or the reason why it would reach none. It
// chooses as Route does and proves nothing. It does not tell whether another organisation has the number: an entry that
// waits for proof on shared addresses is reported as waiting, whoever would get the call.
func (s *Service) Preview(ctx context.Context, org, e164 string, c Call) (n *Number, why string, err error) {
	all, err := s.entries(ctx, e164)
	if err != nil {
		return nil, "", err
	}
	i := slices.IndexFunc(all, func(n Number) bool { return n.OrgID == org })
	if i < 0 {
		return nil, NotOurs, nil
	}
	own := &all[i]
	if ok, err := s.mayBeFor(ctx, own, c); err != nil || !ok {
		return nil, OtherTrunk, err
	}
	if own.provenAt.IsZero() {
		shared, err := s.config.Trunks.SharedSource(ctx, org, *own.TrunkID)
		if err != nil || shared {
			return nil, AwaitingProof, err
		}
	}
	if n, err = s.match(ctx, all, c); n == nil || n.OrgID != org {
		return nil, NotRoutedHere, err
	}
	return n, "", err
}

// mayBeFor reports whether a call may have come over the trunk of a number.
func (s *Service) mayBeFor(ctx context.Context, n *Number, c Call) (bool, error) {
	if n.TrunkID == nil || n.Status != "active" && !n.isClaim() {
		return false, nil
	}
	if *n.TrunkID == c.TrunkID {
		return true, nil
	}
	return s.config.Trunks.MatchesSource(ctx, c.Source, *n.TrunkID)
}

// lastProven returns the entry to which a call belongs: the one proven last, else the one in use, else the only one.
// It returns nil if several wait for proof, because a call cannot tell which of them is right.
func lastProven(all []*Number) (best *Number) {
	waiting := 0
	for _, n := range all {
		switch {
		case best == nil, n.rank() > best.rank(), n.provenAt.After(best.provenAt.Time):
			best = n
		}
		if n.rank() == 0 {
			waiting++
		}
	}
	if best != nil && best.rank() == 0 && waiting > 1 {
		return nil
	}
	return best
}

func (n *Number) rank() int {
	switch {
	case !n.provenAt.IsZero():
		return 2
	case n.Status == "active":
		return 1
	}
	return 0
}

// prove stores that a call came to a number, and takes it into use.
func (s *Service) prove(ctx context.Context, n Number) error {
	return s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		now := db.At(s.now())
		const text = `UPDATE numbers SET proven_at = $3, status = 'active', status_detail = NULL, allocated_at = COALESCE(allocated_at, $3),
			updated_at = $3 WHERE org_id = $1 AND id = $2 AND proven_at IS NULL AND status IN ('active', 'pending')`
		r, err := tx.Exec(ctx, text, n.OrgID, n.ID, now)
		if err != nil {
			return fmt.Errorf("store proof of number: %w", err)
		}
		if changed, err := r.RowsAffected(); err != nil || changed == 0 {
			return err
		}
		s.publishChanged(tx, n.Number)
		if !n.isClaim() {
			return nil
		}
		if n, err = getNumber(ctx, tx, n.OrgID, n.ID); err != nil {
			return fmt.Errorf("read number: %w", err)
		}
		return s.publishAllocated(ctx, tx, n)
	})
}

// Confirm stores that a number belongs to an organisation. The operator calls it by the CLI. The number is in use then,
// and calls that may be for several entries of it are for this one.
func (s *Service) Confirm(ctx context.Context, org, text string) error {
	o, err := s.orgs.Get(ctx, org)
	if err != nil {
		return fmt.Errorf("there is no organisation %s", org)
	}
	e164, ok := Parse(text, o.Country)
	if !ok {
		return op.Invalid(op.Field("number", "invalid_e164", "not a valid number for "+o.Country))
	}
	return s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		const text = `UPDATE numbers SET proven_at = NULL, updated_at = $3 WHERE org_id = $1 AND number = $2 AND trunk_id IS NOT NULL
			AND status IN ('active', 'pending') RETURNING id`
		var id string
		if err := tx.QueryRow(ctx, text, org, e164, db.At(s.now())).Scan(&id); db.IsNone(err) {
			return fmt.Errorf("the organisation has no number %s on a trunk; add it first", e164)
		} else if err != nil {
			return fmt.Errorf("find number: %w", err)
		}
		n, err := getNumber(ctx, tx, org, id)
		if err != nil {
			return fmt.Errorf("read number: %w", err)
		}
		return s.prove(ctx, n)
	})
}
