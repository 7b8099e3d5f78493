package smppserver

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// CountForNumber returns the number of stored submissions and parts to a phone number.
func (s *Service) CountForNumber(ctx context.Context, q db.Querier, org, phone string) (n int, err error) {
	const text = `SELECT (SELECT COUNT(*) FROM sms_submissions WHERE org_id = $1 AND peer = $2)
		+ (SELECT COUNT(*) FROM sms_parts WHERE org_id = $1 AND peer = $2)`
	err = q.QueryRow(ctx, text, org, phone).Scan(&n)
	return n, err
}

// EraseForNumber erases the submissions and parts to a phone number, and returns their number.
func (s *Service) EraseForNumber(ctx context.Context, tx db.Querier, org, phone string) (all int, err error) {
	for _, q := range []string{`DELETE FROM sms_submissions WHERE org_id = $1 AND peer = $2`,
		`DELETE FROM sms_parts WHERE org_id = $1 AND peer = $2`} {
		r, err := tx.Exec(ctx, q, org, phone)
		if err != nil {
			return all, fmt.Errorf("erase submissions: %w", err)
		}
		n, err := r.RowsAffected()
		if err != nil {
			return all, err
		}
		all += int(n)
	}
	return all, nil
}
