package db

import "context"

// Affected runs a statement and adds the number of its rows to total.
func Affected(ctx context.Context, q Querier, total *int64, text string, args ...any) error {
	r, err := q.Exec(ctx, text, args...)
	if err != nil {
		return err
	}
	n, err := r.RowsAffected()
	*total += n
	return err
}
