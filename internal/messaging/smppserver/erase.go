package smppserver

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
)

// toPeer selects rows of a phone number.
const toPeer = `org_id = $1 AND peer = $2`

// CountForNumber returns the number of stored submissions and parts to a phone number.
func (s *Service) CountForNumber(ctx context.Context, q db.Querier, org, phone string) (n int, err error) {
	const text = `SELECT (SELECT COUNT(*) FROM sms_submissions WHERE ` + toPeer + `) + (SELECT COUNT(*) FROM sms_parts WHERE ` + toPeer + `)`
	err = q.QueryRow(ctx, text, org, phone).Scan(&n)
	return n, err
}

// EraseForNumber erases the submissions and parts to a phone number, and returns their number.
func (s *Service) EraseForNumber(ctx context.Context, tx db.Querier, org, phone string) (all int, err error) {
	for _, q := range []string{`DELETE FROM sms_submissions WHERE ` + toPeer, `DELETE FROM sms_parts WHERE ` + toPeer} {
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

// ExportForNumber exports the submissions and parts to a phone number.
func (s *Service) ExportForNumber(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error {
	for kind, text := range map[string]string{
		"sms_submissions": `SELECT * FROM sms_submissions WHERE ` + toPeer + ` ORDER BY id`,
		"sms_parts":       `SELECT * FROM sms_parts WHERE ` + toPeer + ` ORDER BY application_id, part_key, sequence`,
	} {
		if err := personal.Rows(ctx, q, w, kind, text, org, phone); err != nil {
			return err
		}
	}
	return nil
}
