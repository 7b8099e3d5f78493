package auth_test

import (
	"context"
	"errors"
	"testing"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/user"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// TestGrant_EndsWithItsPersonOnly suspends a user: the user's grants end. A request of another user to revoke them is refused.
func TestGrant_EndsWithItsPersonOnly(t *testing.T) {
	eachDB(t, func(s *server) {
		ctx, a, bob := context.Background(), s.tokens(), s.addUser("bob@example.com", "admin")
		p, err := s.VerifyFor(ctx, a.Access, auth.MCP, access.Live, here)
		if err != nil {
			s.t.Fatal(err)
		}
		err = s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
			return s.RevokeGrant(ctx, tx, s.org.ID, bob.UserID, p.KeyID)
		})
		var known *op.Error
		if !errors.As(err, &known) || known.Code != "not_found" || s.errorAt(a.Access, auth.MCP) != "" {
			s.t.Errorf("another person revokes the grant: %v", err)
		}
		set := func(status string) {
			s.t.Helper()
			change := op.Change[string]{Set: true, V: status}
			if _, err := s.users.Update(access.With(ctx, access.Principal{OrgID: s.org.ID, Role: "owner", Scopes: access.All()}),
				&user.UpdateIn{OneIn: user.OneIn{ID: s.person.UserID}, Body: user.Patch{Status: change}}); err != nil {
				s.t.Fatal(err)
			}
		}
		set("suspended")
		if got := s.errorAt(a.Access, auth.MCP); got != "unauthenticated" {
			s.t.Errorf("the token of a suspended person: %q", got)
		}
		if err := s.Revalidate(ctx, p); err == nil {
			s.t.Error("a stream of a suspended person goes on")
		}
		s.wantError(s.refresh(a.Refresh), "invalid_grant", "a refresh for a suspended person")
		set("active")
		if got := s.errorAt(a.Access, auth.MCP); got != "" {
			s.t.Errorf("the token of a person who came back: %q", got)
		}
	})
}
