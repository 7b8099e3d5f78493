package device

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// The registration of a phone in a browser ends with the browser session in which the phone got its token.

// noteSession stores the browser session that gets a token for a device. If another credential gets the token, it stores NULL.
func noteSession(ctx context.Context, q db.Querier, d Device) error {
	p, _ := access.From(ctx)
	session := p.KeyID
	if !strings.HasPrefix(session, "ses_") {
		session = ""
	}
	_, err := q.Exec(ctx, `UPDATE devices SET session_id = $3 WHERE org_id = $1 AND id = $2`, d.OrgID, d.ID, db.Null(session))
	return err
}

// SessionEnded ends the registrations of the browsers that got their tokens in a session, and deletes their unused tokens. Their user is
// offline at once, unless another phone is registered. Connections of this node are closed after the commit. Other nodes close
// theirs at a request some seconds later, because its token is of an earlier generation.
func (s *Service) SessionEnded(ctx context.Context, tx db.Querier, org, session string) error {
	const text = `UPDATE devices SET session_id = NULL, lost_at = NULL, token_generation = token_generation + 1
		WHERE org_id = $1 AND session_id = $2 RETURNING id, username, user_id`
	names, users := map[string]string{}, map[string]bool{}
	err := db.ForEach(ctx, tx, "find browsers of a session", text, []any{org, session}, func(scan func(...any) error) error {
		var id, username string
		var user db.Null
		err := scan(&id, &username, &user)
		names[id], users[string(user)] = username, true
		return err
	})
	if err != nil {
		return err
	}
	for id, username := range names {
		if err := s.endRegistration(ctx, tx, org, id); err != nil {
			return err
		}
		if err := deleteTokens(ctx, tx, org, id); err != nil {
			return fmt.Errorf("delete tokens of browser: %w", err)
		}
		db.OnCommit(tx, func() { s.config.Server.CloseToken(username) })
	}
	for user := range users { // a lost browser has no registration that ends, but its user is not away any more
		db.OnCommit(tx, func() { s.registrationChanged(org, user) })
	}
	return nil
}
