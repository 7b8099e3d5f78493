package smppserver

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

const columns = `org_id, id, name, system_id, password, enabled, numbers, max_binds, rate_per_second, default_alphabet, created_at, updated_at`

func insert(ctx context.Context, q db.Querier, a Application) error {
	const text = `INSERT INTO sms_applications (` + columns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
	_, err := q.Exec(ctx, text, a.org, a.ID, a.Name, a.SystemID, a.digest, a.Enabled, db.AsJSON(a.Numbers), a.MaxBinds, a.RatePerSecond,
		a.DefaultAlphabet, a.CreatedAt, a.UpdatedAt)
	return err
}

func update(ctx context.Context, q db.Querier, a Application) error {
	const text = `UPDATE sms_applications SET name = $3, password = $4, enabled = $5, numbers = $6, max_binds = $7, rate_per_second = $8,
		default_alphabet = $9, updated_at = $10 WHERE org_id = $1 AND id = $2`
	_, err := q.Exec(ctx, text, a.org, a.ID, a.Name, a.digest, a.Enabled, db.AsJSON(a.Numbers), a.MaxBinds, a.RatePerSecond,
		a.DefaultAlphabet, a.UpdatedAt)
	return err
}

// deleteApplication deletes an application with its submissions and parts.
func deleteApplication(ctx context.Context, q db.Querier, org, id string) error {
	for _, text := range []string{
		`DELETE FROM sms_parts WHERE org_id = $1 AND application_id = $2`,
		`DELETE FROM sms_submissions WHERE org_id = $1 AND application_id = $2`,
		`DELETE FROM sms_applications WHERE org_id = $1 AND id = $2`,
	} {
		if _, err := q.Exec(ctx, text, org, id); err != nil {
			return fmt.Errorf("delete application: %w", err)
		}
	}
	return nil
}

func scan(scan func(...any) error) (a Application, err error) {
	var numbers db.JSON[[]string]
	err = scan(&a.org, &a.ID, &a.Name, &a.SystemID, &a.digest, &a.Enabled, &numbers, &a.MaxBinds, &a.RatePerSecond, &a.DefaultAlphabet,
		&a.CreatedAt, &a.UpdatedAt)
	a.Numbers = append([]string{}, numbers.V...)
	return a, err
}

func get(ctx context.Context, q db.Querier, org, id string) (Application, error) {
	return scan(q.QueryRow(ctx, `SELECT `+columns+` FROM sms_applications WHERE org_id = $1 AND id = $2`, org, id).Scan)
}

func bySystemID(ctx context.Context, q db.Querier, systemID string) (Application, error) {
	// tenant: the system_id determines the organisation, which is not known before
	const text = `SELECT ` + columns + ` FROM sms_applications WHERE system_id = $1`
	return scan(q.QueryRow(ctx, text, systemID).Scan)
}

// lockApplication locks the row of an application until the transaction ends.
func lockApplication(ctx context.Context, tx db.Querier, org, id string) error {
	_, err := tx.Exec(ctx, `UPDATE sms_applications SET updated_at = updated_at WHERE org_id = $1 AND id = $2`, org, id)
	return err
}

func queryApplications(ctx context.Context, q db.Querier, f *db.Filter) ([]Application, error) {
	text, args := f.SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list applications: %w", err)
	}
	defer rows.Close()
	var all []Application
	for rows.Next() {
		a, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, rows.Err()
}
