package signin

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Sessions as credentials of the API and of the event stream. Package rest decides for which requests the cookie counts.

// SessionToken implements rest.Sessions.
func (s *Service) SessionToken(r *http.Request) string { return s.cookie(r, "session") }

// errSession is the reason why a session is no credential.
var errSession = op.Fail("unauthenticated", "this session has ended, or its user may not sign in any more; sign in at /account/login")

// VerifySession implements rest.Sessions. It reads the session, the user and the organisation from the database. So the end of a session, a
// suspension and another role count at once.
func (s *Service) VerifySession(ctx context.Context, token string, env access.Environment, source netip.Addr) (access.Principal, error) {
	v := &visitor{}
	if err := s.loadSession(ctx, v, token); err != nil {
		return access.Principal{}, err
	}
	if !v.isSignedIn() {
		return access.Principal{}, errSession
	}
	p := s.principal(ctx, v)
	p.Source, p.Unconfirmed = source, !v.isFresh(s.cfg.Clock.Now())
	if env != access.Live {
		return p, op.Fail("wrong_environment", "sessions work outside the sandbox only; use a test key there")
	}
	return p, nil
}

// RevalidateSession returns an error if the session of a principal has ended, its user may not sign in any more, or has another role now.
func (s *Service) RevalidateSession(ctx context.Context, p access.Principal) error {
	x, err := sessionByID(ctx, s.cfg.DB.Read(ctx), p.Home(), p.KeyID, db.At(s.cfg.Clock.Now()))
	if db.IsNone(err) || err == nil && (x.pendingCode || x.userID != p.UserID) {
		return errSession
	}
	if err != nil {
		return fmt.Errorf("find session: %w", err)
	}
	u, _, err := s.activeUser(ctx, x.orgID, x.userID)
	if err == nil && (u.ID == "" || u.Role != p.Role) {
		err = errSession
	}
	return err
}

// endSession ends a session of a user, and its event streams. ok is false if there is none.
func (s *Service) endSession(ctx context.Context, tx db.Querier, org, user, id string) (ok bool, err error) {
	if ok, err = dropSession(ctx, tx, org, user, id); err == nil && ok {
		err = s.onSessionsEnded(ctx, tx, org, id)
	}
	return ok, err
}

// endSessions ends all sessions of a user, and their event streams.
func (s *Service) endSessions(ctx context.Context, tx db.Querier, org, user string) error {
	ended, err := dropSessions(ctx, tx, org, user)
	if err != nil {
		return err
	}
	return s.onSessionsEnded(ctx, tx, org, ended...)
}

// sweepSessions deletes expired sessions and ends their telephones, except those of users who are in a call. Each has a transaction of its
// own, so that no call waits for many. It returns how many it deleted.
func (s *Service) sweepSessions(ctx context.Context, now db.Time) (gone int64, err error) {
	q := s.cfg.DB.Read(ctx)
	expired, err := expiredSessions(ctx, q, now)
	if err != nil {
		return 0, err
	}
	for _, x := range expired {
		talks, err := s.cfg.Phones.InCall(ctx, q, x.orgID, x.userID)
		if err != nil {
			return gone, fmt.Errorf("find calls of the user of a session: %w", err)
		}
		if talks {
			continue
		}
		var ended bool
		err = s.cfg.DB.Tx(ctx, func(tx db.Querier) (err error) {
			if ended, err = dropExpiredSession(ctx, tx, x, now); err != nil || !ended {
				return err
			}
			return s.onSessionsEnded(ctx, tx, x.orgID, x.ID)
		})
		if err != nil {
			return gone, fmt.Errorf("end expired session: %w", err)
		}
		if ended {
			gone++
		}
	}
	return gone, nil
}

// onSessionsEnded ends the registrations of the browsers of ended sessions. After the commit it publishes the end on the bus, so that
// their event streams end.
func (s *Service) onSessionsEnded(ctx context.Context, tx db.Querier, org string, sessions ...string) error {
	for _, id := range sessions {
		if err := s.cfg.Phones.SessionEnded(ctx, tx, org, id); err != nil {
			return fmt.Errorf("end the telephone of a session: %w", err)
		}
	}
	db.OnCommit(tx, func() {
		for _, id := range sessions {
			s.cfg.Bus.Publish(access.SessionEnded(id), id)
		}
	})
	return nil
}
