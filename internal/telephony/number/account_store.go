package number

import (
	"context"
	"encoding/json"
	"fmt"

	"soniq/internal/platform/db"
)

func insertAccount(ctx context.Context, q db.Querier, a Account, sealed []byte) error {
	const text = `INSERT INTO number_accounts (org_id, id, provider, trunk_id, settings, enabled, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	_, err := q.Exec(ctx, text, a.org, a.ID, a.Provider, a.TrunkID, sealed, a.enabled, a.CreatedAt, a.UpdatedAt)
	return err
}

func updateAccount(ctx context.Context, q db.Querier, a Account, sealed []byte) error {
	const text = `UPDATE number_accounts SET trunk_id = $3, settings = $4, enabled = $5, updated_at = $6 WHERE org_id = $1 AND id = $2`
	_, err := q.Exec(ctx, text, a.org, a.ID, a.TrunkID, sealed, a.enabled, a.UpdatedAt)
	return err
}

func deleteAccount(ctx context.Context, q db.Querier, org, id string) error {
	_, err := q.Exec(ctx, `DELETE FROM number_accounts WHERE org_id = $1 AND id = $2`, org, id)
	return err
}

// accounts lists the accounts of an organisation with unsealed credentials and their computed fields.
func (s *Service) accounts(ctx context.Context, q db.Querier, org string) ([]Account, error) {
	const text = `SELECT id, provider, trunk_id, settings, enabled, created_at, updated_at FROM number_accounts WHERE org_id = $1 ORDER BY id`
	rows, err := q.Query(ctx, text, org)
	if err != nil {
		return nil, fmt.Errorf("list accounts: %w", err)
	}
	defer rows.Close()
	var all []Account
	for rows.Next() {
		a := Account{org: org}
		var sealed []byte
		if err := rows.Scan(&a.ID, &a.Provider, &a.TrunkID, &sealed, &a.enabled, &a.CreatedAt, &a.UpdatedAt); err != nil {
			return nil, err
		}
		plain, err := s.config.Seal.Unseal(sealed, a.additionalData())
		if err == nil {
			err = json.Unmarshal(plain, &a.credentials)
		}
		if err != nil {
			return nil, fmt.Errorf("read settings of account %s: %w", a.ID, err)
		}
		s.fillComputed(&a)
		all = append(all, a)
	}
	return all, rows.Err()
}

// fillComputed sets the fields of an account that are not stored in its row: URL, connection id, status and last
// error.
func (s *Service) fillComputed(a *Account) {
	a.URL, a.ConnectionID, a.Status, a.LastError = a.credentials.URL, db.Null(a.credentials.Connection).Ptr(), "active", nil
	if m := s.existingClient(*a); m != nil {
		a.Status, a.LastError = m.health()
	}
	if !a.enabled {
		a.Status = "disabled"
	}
}
