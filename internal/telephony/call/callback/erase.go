package callback

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
)

// toNumber selects the callbacks to a number.
const toNumber = ` FROM callbacks WHERE org_id = $1 AND to_number = $2`

// CountForNumber counts the callbacks to a number.
func (s *Service) CountForNumber(ctx context.Context, q db.Querier, org, phone string) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT count(*)`+toNumber, org, phone).Scan(&n)
	return n, err
}

// EraseForNumber deletes the callbacks to a number, including scheduled ones.
func (s *Service) EraseForNumber(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	r, err := tx.Exec(ctx, `DELETE`+toNumber, org, phone)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// ExportForNumber exports the callbacks to a number.
func (s *Service) ExportForNumber(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error {
	return personal.Rows(ctx, q, w, "callbacks", `SELECT *`+toNumber+` ORDER BY id`, org, phone)
}
