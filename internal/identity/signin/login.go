package signin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"soniq/internal/identity/auth"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

func (s *Service) showLogin(w http.ResponseWriter, r *http.Request, v *visitor) error {
	next := local(r.URL.Query().Get("next"))
	switch {
	case v.isSignedIn():
		http.Redirect(w, r, next, http.StatusSeeOther)
	case v.session.pendingCode:
		s.show(w, v, http.StatusOK, "code", page{Title: "Enter your code", Next: next})
	default:
		s.show(w, v, http.StatusOK, "login", page{Title: "Sign in", Next: next})
	}
	return nil
}

// continued are the pages beside the account pages and the console that go on after a sign-in.
var continued = []string{auth.AuthorizePath, "/crm/oauth/start"}

// consolePrefix is the address below which the web console is.
const consolePrefix = "/console/"

// local returns next if it is a local page to continue with, else the account page. It prevents open redirects.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Host != "" || u.Scheme != "" || strings.Contains(next, `\`) || strings.HasPrefix(next, "//") ||
		u.Path != "/account" && !strings.HasPrefix(u.Path, "/account/") && !strings.HasPrefix(u.Path, consolePrefix) &&
			!slices.Contains(continued, u.Path) {
		return "/account"
	}
	return next
}

// login checks an e-mail address and a password. The response does not reveal whether the user exists.
func (s *Service) login(w http.ResponseWriter, r *http.Request, v *visitor) error {
	email, next := strings.TrimSpace(r.PostForm.Get("email")), local(r.PostForm.Get("next"))
	again := func(text string, status int) error {
		s.show(w, v, status, "login", page{Title: "Sign in", Fault: text, Email: email, Next: next})
		return nil
	}
	attempt, err := s.beginAttempt(r, email)
	if err != nil {
		return s.showFault(err, again)
	}
	l, err := s.findLogin(r.Context(), email, r.PostForm.Get("password"))
	if err != nil {
		return err
	}
	if l.userID == "" {
		return again("The e-mail address or the password is wrong.", http.StatusUnauthorized)
	}
	half := l.totp != nil
	err = s.cfg.DB.TxContext(r.Context(), func(ctx context.Context, tx db.Querier) error {
		if err := s.begin(ctx, tx, w, r, v, l.orgID, l.userID, half); err != nil {
			return err
		}
		if half {
			return s.attemptSucceeded(ctx, tx, attempt)
		}
		return s.signInSucceeded(ctx, tx, w, r, l, attempt)
	})
	if err != nil {
		return err
	}
	if half {
		next = "/account/login?next=" + escape(next)
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// findLogin returns the login that matches a password; without a user id if none does. It takes the same time for an
// unknown address.
func (s *Service) findLogin(ctx context.Context, email, password string) (login, error) {
	all, err := loginsOf(ctx, s.cfg.DB.Read(ctx), email)
	if err != nil {
		return login{}, fmt.Errorf("find login: %w", err)
	}
	if len(all) == 0 {
		_, err := s.derive(ctx, password[:min(len(password), maxPasswordLength)], make([]byte, saltLength))
		return login{}, err
	}
	for _, l := range all {
		ok, err := s.matches(ctx, password, l.hash)
		if err != nil {
			return login{}, err
		}
		if !ok {
			continue
		}
		if u, _, err := s.activeUser(ctx, l.orgID, l.userID); err != nil || u.ID != "" {
			return l, err
		}
	}
	return login{}, nil
}

// secondStep checks a code of the authenticator, or a recovery code.
func (s *Service) secondStep(w http.ResponseWriter, r *http.Request, v *visitor) error {
	next := local(r.PostForm.Get("next"))
	if !v.session.pendingCode {
		http.Redirect(w, r, "/account/login?next="+escape(next), http.StatusSeeOther)
		return nil
	}
	again := func(text string, status int) error {
		s.show(w, v, status, "code", page{Title: "Enter your code", Fault: text, Next: next})
		return nil
	}
	attempt, err := s.beginAttempt(r, v.user.Email)
	if err != nil {
		return s.showFault(err, again)
	}
	good := false
	err = s.cfg.DB.TxContext(r.Context(), func(ctx context.Context, tx db.Querier) error {
		l, err := getLogin(ctx, tx, v.org.ID, v.user.ID)
		if err != nil {
			return fmt.Errorf("find login: %w", err)
		}
		if good, err = s.codeMatches(ctx, tx, l, r.PostForm.Get("code")); err != nil || !good {
			return err
		}
		if err := s.begin(ctx, tx, w, r, v, l.orgID, l.userID, false); err != nil {
			return err
		}
		return s.signInSucceeded(ctx, tx, w, r, l, attempt)
	})
	if err != nil {
		return err
	}
	if !good {
		return again("This code is wrong, or was used already.", http.StatusUnauthorized)
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// codeMatches reports whether a code is valid: from the authenticator, or a recovery code. Each works once.
func (s *Service) codeMatches(ctx context.Context, tx db.Querier, l login, code string) (bool, error) {
	seed, err := s.cfg.Seal.Unseal(l.totp, seedAAD(l.orgID, l.userID))
	if err != nil {
		return false, fmt.Errorf("read seed: %w", err)
	}
	code = cleanCode(code)
	if step, ok := totpStep(seed, code, s.cfg.Clock.Now(), l.step); ok {
		return useStep(ctx, tx, l.orgID, l.userID, step)
	}
	if len(code) != recoveryCodeLength {
		return false, nil
	}
	return useRecoveryCode(ctx, tx, l.orgID, l.userID, s.cfg.Seal.Digest("recovery "+code))
}

func seedAAD(org, user string) []byte { return []byte(org + "|account_logins|" + user + "|totp") }

// signInSucceeded ends the attempt, stores the device and writes an audit line.
func (s *Service) signInSucceeded(ctx context.Context, tx db.Querier, w http.ResponseWriter, r *http.Request, l login, a attempt) error {
	if err := s.attemptSucceeded(ctx, tx, a); err != nil {
		return err
	}
	db.OnCommit(tx, func() { s.rememberDevice(w, r, a.email) })
	return s.writeAudit(ctx, tx, access.Principal{OrgID: l.orgID, UserID: l.userID, KeyName: "account page", Kind: Session},
		"account.login", l.userID)
}

func (s *Service) logout(w http.ResponseWriter, r *http.Request, v *visitor) error {
	err := s.cfg.DB.Tx(r.Context(), func(tx db.Querier) error {
		_, err := s.endSession(r.Context(), tx, v.org.ID, v.user.ID, v.session.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	s.setCookie(w, r, "session", "")
	http.Redirect(w, r, "/account/login", http.StatusSeeOther)
	return nil
}

func escape(text string) string { return url.QueryEscape(text) }
