package user

import (
	"context"
	"fmt"
)

// ByEmail returns the users with an e-mail address who are not removed: of one organisation, or with "" of all that are no sandbox.
// It is for the operator alone.
func (s *Service) ByEmail(ctx context.Context, email, org string) ([]User, error) {
	// tenant: the operator may not know in which organisation somebody is
	const text = `SELECT ` + columns + ` FROM users WHERE lower(email) = lower($1) AND status <> 'removed' AND ($2 = '' OR org_id = $2)
		AND EXISTS (SELECT 1 FROM orgs o WHERE o.id = users.org_id AND o.live_id IS NULL) ORDER BY org_id LIMIT 20`
	rows, err := s.db.Read(ctx).Query(ctx, text, email, org)
	if err != nil {
		return nil, fmt.Errorf("find users by e-mail address: %w", err)
	}
	defer rows.Close()
	var all []User
	for rows.Next() {
		u, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, rows.Err()
}
