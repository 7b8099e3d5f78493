package callback

import (
	"context"

	"soniq/internal/platform/db"
)

// CountForNumber counts the callbacks to a number.
func (s *Service) CountForNumber(ctx context.Context, q db.Querier, org, phone string) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT count(*) FROM callbacks WHERE org_id = $1 AND to_number = $2`, org, phone).Scan(&n)
	return n, err
}

// EraseForNumber deletes the callbacks to a number, including scheduled ones.
func (s *Service) EraseForNumber(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	r, err := tx.Exec(ctx, `DELETE FROM callbacks WHERE org_id = $1 AND to_number = $2`, org, phone)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}
