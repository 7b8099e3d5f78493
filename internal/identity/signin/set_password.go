package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/seal"
)

// linkLife is how long a link to set a password works.
const linkLife = 24 * time.Hour

// Link creates a link with which a user sets a password once. Earlier links of the user stop working.
func (s *Service) Link(ctx context.Context, org, user string) (string, error) {
	token, now := seal.Random(tokenLength), s.cfg.Clock.Now()
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if err := dropLinks(ctx, tx, org, user); err != nil {
			return err
		}
		return insertLink(ctx, tx, org, user, s.cfg.Seal.Digest(token), db.At(now), db.At(now.Add(linkLife)))
	})
	if err != nil {
		return "", fmt.Errorf("create link: %w", err)
	}
	return s.cfg.BaseURL + "/account/welcome/" + token, nil
}

// errLink is shown for an invalid link.
var errLink = &fault{http.StatusNotFound, "This link was used already, or is too old. Ask your administrator for a new one."}

// linkUser returns the user of a link: the link of an invitation, or a link to reset the password.
func (s *Service) linkUser(ctx context.Context, q db.Querier, token string) (u user.User, invited bool, err error) {
	if len(token) != tokenLength {
		return u, false, errLink
	}
	u, err = s.cfg.Users.Invited(ctx, q, token)
	if err == nil {
		return u, true, nil
	}
	if !db.IsNone(err) {
		return u, false, fmt.Errorf("find invitation: %w", err)
	}
	org, id, err := linkByDigest(ctx, q, s.cfg.Seal.Digest(token), db.At(s.cfg.Clock.Now()))
	if err == nil {
		u, err = s.cfg.Users.Get(ctx, q, org, id)
	}
	if db.IsNone(err) {
		return u, false, errLink
	}
	return u, false, err
}

func (s *Service) showWelcome(w http.ResponseWriter, r *http.Request, v *visitor) error {
	u, _, err := s.linkUser(r.Context(), s.cfg.DB.Read(r.Context()), r.PathValue("token"))
	if err != nil {
		return err
	}
	s.show(w, v, http.StatusOK, "welcome", page{Title: "Choose a password", Email: u.Email, Next: r.PathValue("token")})
	return nil
}

// welcome sets the password of a link and uses the link up. All sessions of the user end.
func (s *Service) welcome(w http.ResponseWriter, r *http.Request, v *visitor) error {
	token, password := r.PathValue("token"), r.PostForm.Get("password")
	u, _, err := s.linkUser(r.Context(), s.cfg.DB.Read(r.Context()), token)
	if err != nil {
		return err
	}
	text := passwordFault(password, u.Email)
	if text == "" && password != r.PostForm.Get("again") {
		text = "The two passwords are not the same."
	}
	if text != "" {
		s.show(w, v, http.StatusUnprocessableEntity, "welcome", page{Title: "Choose a password", Email: u.Email, Next: token, Fault: text})
		return nil
	}
	hash, err := s.hash(r.Context(), password)
	if err != nil {
		return err
	}
	to := "/account"
	err = s.cfg.DB.TxContext(r.Context(), func(ctx context.Context, tx db.Querier) error {
		l, err := s.setPassword(ctx, tx, token, hash)
		if err != nil {
			return err
		}
		db.OnCommit(tx, func() { s.rememberDevice(w, r, u.Email) })
		if l.totp != nil {
			to = "/account/login"
			return nil
		}
		return s.begin(ctx, tx, w, r, v, l.orgID, l.userID, false)
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// setPassword stores the password for the user of a link.
func (s *Service) setPassword(ctx context.Context, tx db.Querier, token, hash string) (l login, err error) {
	u, invited, err := s.linkUser(ctx, tx, token)
	if err != nil {
		return l, err
	}
	if known, _, err := s.activeUser(ctx, u.OrgID, u.ID); err != nil || known.ID == "" {
		return l, errors.Join(err, errLink)
	}
	if invited {
		if _, err := s.cfg.Users.Accept(ctx, tx, token); err != nil {
			return l, fmt.Errorf("accept invitation: %w", err)
		}
	}
	if err := setHash(ctx, tx, u.OrgID, u.ID, hash, db.At(s.cfg.Clock.Now())); err != nil {
		return l, fmt.Errorf("store password: %w", err)
	}
	for _, forget := range []func(context.Context, db.Querier, string, string) error{dropLinks, s.endSessions} {
		if err := forget(ctx, tx, u.OrgID, u.ID); err != nil {
			return l, fmt.Errorf("store password: %w", err)
		}
	}
	if err := dropFailures(ctx, tx, s.failureKey(u.Email, "")); err != nil {
		return l, fmt.Errorf("store password: %w", err)
	}
	p := access.Principal{OrgID: u.OrgID, UserID: u.ID, KeyName: "account page", Kind: Session}
	if err := s.writeAudit(ctx, tx, p, "account.password", u.ID); err != nil {
		return l, err
	}
	return getLogin(ctx, tx, u.OrgID, u.ID)
}
