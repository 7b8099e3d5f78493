package smscarrier

import (
	"context"
	"encoding/json"
	"fmt"

	"soniq/internal/platform/db"
)

const columns = `org_id, id, provider, name, enabled, priority, prefixes, numbers, rate, number_rate, settings, created_at, updated_at`

// scan reads a carrier and decrypts its settings.
func (s *Service) scan(scan func(...any) error) (Carrier, error) {
	var c Carrier
	var prefixes, numbers db.JSON[[]string]
	var sealed []byte
	err := scan(&c.org, &c.ID, &c.Provider, &c.Name, &c.Enabled, &c.Priority, &prefixes, &numbers, &c.RatePerSecond, &c.NumberRate, &sealed,
		&c.CreatedAt, &c.UpdatedAt)
	if err != nil {
		return c, err
	}
	c.Prefixes, c.Numbers = append([]string{}, prefixes.V...), append([]string{}, numbers.V...)
	plain, err := s.cfg.Seal.Unseal(sealed, c.associatedData())
	if err == nil {
		err = json.Unmarshal(plain, &c.secret)
	}
	if err != nil {
		return c, fmt.Errorf("read settings of carrier %s: %w", c.ID, err)
	}
	return c, nil
}

func (s *Service) carrier(ctx context.Context, q db.Querier, org, id string) (Carrier, error) {
	return s.scan(q.QueryRow(ctx, `SELECT `+columns+` FROM sms_carriers WHERE org_id = $1 AND id = $2`, org, id).Scan)
}

// carriers returns the carriers of an organisation by priority.
func (s *Service) carriers(ctx context.Context, q db.Querier, org string) ([]Carrier, error) {
	return s.read(ctx, q, `SELECT `+columns+` FROM sms_carriers WHERE org_id = $1 ORDER BY priority, id`, org)
}

func (s *Service) read(ctx context.Context, q db.Querier, text string, args ...any) ([]Carrier, error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list carriers: %w", err)
	}
	defer rows.Close()
	var all []Carrier
	for rows.Next() {
		c, err := s.scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// byToken returns the carrier for the token of a callback URL.
func (s *Service) byToken(ctx context.Context, q db.Querier, token string) (Carrier, error) {
	// tenant: the token determines the organisation
	const text = `SELECT ` + columns + ` FROM sms_carriers WHERE token = $1`
	return s.scan(q.QueryRow(ctx, text, s.cfg.Seal.Digest(token)).Scan)
}

// upsert stores a carrier, new or changed.
func (s *Service) upsert(ctx context.Context, tx db.Querier, c Carrier) error {
	raw, err := json.Marshal(c.secret)
	if err != nil {
		return err
	}
	sealed, err := s.cfg.Seal.Seal(raw, c.associatedData())
	if err != nil {
		return fmt.Errorf("seal settings: %w", err)
	}
	const q = `INSERT INTO sms_carriers (` + columns + `, token) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT (org_id, id) DO UPDATE SET name = excluded.name, enabled = excluded.enabled, priority = excluded.priority,
			prefixes = excluded.prefixes, numbers = excluded.numbers, rate = excluded.rate, number_rate = excluded.number_rate,
			settings = excluded.settings, updated_at = excluded.updated_at`
	_, err = tx.Exec(ctx, q, c.org, c.ID, c.Provider, c.Name, c.Enabled, c.Priority, db.AsJSON(c.Prefixes), db.AsJSON(c.Numbers),
		c.RatePerSecond, c.NumberRate, sealed, c.CreatedAt, c.UpdatedAt, s.cfg.Seal.Digest(c.secret.Token))
	if err != nil {
		return fmt.Errorf("write carrier: %w", err)
	}
	return nil
}

// deleteCarrier deletes a carrier with its state and waiting parts.
func deleteCarrier(ctx context.Context, tx db.Querier, org, id string) error {
	for _, q := range []string{`DELETE FROM sms_carrier_states WHERE org_id = $1 AND carrier_id = $2`,
		`DELETE FROM sms_incoming_parts WHERE org_id = $1 AND carrier_id = $2`, `DELETE FROM sms_carriers WHERE org_id = $1 AND id = $2`} {
		if _, err := tx.Exec(ctx, q, org, id); err != nil {
			return fmt.Errorf("delete carrier: %w", err)
		}
	}
	return nil
}

// publishChange publishes, at commit, that the carriers of an organisation have changed.
func (s *Service) publishChange(tx db.Querier, org string) {
	db.OnCommit(tx, func() { s.cfg.Bus.Publish(Changed, org) })
}
