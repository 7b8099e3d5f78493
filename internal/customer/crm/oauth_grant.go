package crm

import (
	"context"
	"encoding/json"
	"fmt"

	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/db"
)

// grantAAD returns the associated data that binds sealed tokens to their row.
func (c Connection) grantAAD() []byte { return []byte(c.org + "|crm_grants|" + c.ID + "|tokens") }

// grantOf reads the grant of a connection. It returns db.ErrNone if no person has given consent.
func (s *Service) grantOf(ctx context.Context, q db.Querier, c Connection) (g adapter.Grant, err error) {
	var sealed []byte
	var expires db.Time
	var refused db.Null
	const text = `SELECT tokens, expires_at, version, refused FROM crm_grants WHERE org_id = $1 AND connection_id = $2`
	if err := q.QueryRow(ctx, text, c.org, c.ID).Scan(&sealed, &expires, &g.Version, &refused); err != nil {
		return g, err
	}
	plain, err := s.cfg.Seal.Unseal(sealed, c.grantAAD())
	if err == nil {
		err = json.Unmarshal(plain, &g)
	}
	if err != nil {
		return g, fmt.Errorf("read tokens of connection %s: %w", c.ID, err)
	}
	g.Expires, g.Refused = expires.Time, string(refused)
	return g, nil
}

// putGrant replaces the grant of a connection and ends the lease of the renewing process.
func (s *Service) putGrant(ctx context.Context, tx db.Querier, c Connection, g adapter.Grant) error {
	plain, err := json.Marshal(g)
	if err != nil {
		return err
	}
	sealed, err := s.cfg.Seal.Seal(plain, c.grantAAD())
	if err != nil {
		return fmt.Errorf("seal tokens: %w", err)
	}
	const q = `INSERT INTO crm_grants (org_id, connection_id, tokens, expires_at, version) VALUES ($1, $2, $3, $4, 1)
		ON CONFLICT (org_id, connection_id) DO UPDATE SET tokens = excluded.tokens, expires_at = excluded.expires_at,
			version = crm_grants.version + 1, leased_until = NULL, refused = NULL`
	if _, err := tx.Exec(ctx, q, c.org, c.ID, sealed, db.At(g.Expires)); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	return nil
}

// dropGrant deletes the grant of a connection that leads to another place from now on. Its tokens are for the old place; a person has to
// agree again.
func dropGrant(ctx context.Context, tx db.Querier, c *Connection) error {
	if _, err := tx.Exec(ctx, `DELETE FROM crm_grants WHERE org_id = $1 AND connection_id = $2`, c.org, c.ID); err != nil {
		return fmt.Errorf("delete tokens of connection %s: %w", c.ID, err)
	}
	c.grantState = ""
	return nil
}

// leaseRenewal takes the lease to renew a grant for leaseDuration. It returns false if another process holds the
// lease, or the version has changed.
func (s *Service) leaseRenewal(ctx context.Context, c Connection, version int64) (ours bool, err error) {
	now := s.cfg.Clock.Now()
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `UPDATE crm_grants SET leased_until = $4 WHERE org_id = $1 AND connection_id = $2 AND version = $3
			AND (leased_until IS NULL OR leased_until < $5)`
		r, err := tx.Exec(ctx, q, c.org, c.ID, version, db.At(now.Add(leaseDuration)), db.At(now))
		if err != nil {
			return fmt.Errorf("lease tokens: %w", err)
		}
		n, err := r.RowsAffected()
		ours = n == 1
		return err
	})
	return ours, err
}

// releaseRenewal ends a lease. why is the reason if the vendor refuses the grant permanently, and "" if the renewal
// may be retried.
func (s *Service) releaseRenewal(ctx context.Context, c Connection, version int64, why string) error {
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `UPDATE crm_grants SET leased_until = NULL, refused = $4 WHERE org_id = $1 AND connection_id = $2 AND version = $3`
		if _, err := tx.Exec(ctx, q, c.org, c.ID, version, db.Null(why)); err != nil {
			return fmt.Errorf("end lease of tokens: %w", err)
		}
		if why != "" {
			s.publishChanged(tx, c.org)
		}
		return nil
	})
}
