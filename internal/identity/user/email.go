package user

import "context"

// ByEmail returns the users with an e-mail address who are not removed, in one organisation or, with "", in all live
// ones. It is for the operator only.
func (s *Service) ByEmail(ctx context.Context, email, org string) ([]User, error) {
	// tenant: the operator may not know the organisation of a user
	const text = `SELECT ` + userColumns + ` FROM users WHERE lower(email) = lower($1) AND status <> 'removed' AND ($2 = '' OR org_id = $2)
		AND EXISTS (SELECT 1 FROM orgs o WHERE o.id = users.org_id AND o.live_id IS NULL) ORDER BY org_id LIMIT 20`
	return queryUsers(ctx, s.db.Read(ctx), "find users by e-mail address", text, email, org)
}
