package signin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Failed sign-ins before waiting begins, the first wait, and the longest. Each further failure doubles the wait.
const (
	failuresBeforeWait = 5
	firstWait          = 30 * time.Second
	longestWait        = time.Hour
)

// attemptLimit limits the sign-in attempts from one source address, over all users.
var attemptLimit = access.Policy{Name: "logins", Quota: 60, Window: 10 * time.Minute}

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

// local returns next if it is a local page to continue with, else the account page. It prevents open redirects.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Host != "" || u.Scheme != "" || strings.Contains(next, `\`) || strings.HasPrefix(next, "//") ||
		u.Path != "/account" && !strings.HasPrefix(u.Path, "/account/") && u.Path != "/auth/oauth/authorize" {
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
	if err := s.checkAttempts(r.Context(), email); err != nil {
		return s.showFault(err, again)
	}
	l, err := s.findLogin(r.Context(), email, r.PostForm.Get("password"))
	if err != nil {
		return err
	}
	if l.userID == "" {
		if err := s.countFailure(r.Context(), email); err != nil {
			return err
		}
		return again("The e-mail address or the password is wrong.", http.StatusUnauthorized)
	}
	half := l.totp != nil
	err = s.DB.TxContext(r.Context(), func(ctx context.Context, tx db.Querier) error {
		if err := s.begin(ctx, tx, w, r, v, l.orgID, l.userID, half); err != nil || half {
			return err
		}
		return s.signInSucceeded(ctx, tx, l, email)
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
	all, err := loginsOf(ctx, s.DB.Read(ctx), email)
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
	if err := s.checkAttempts(r.Context(), v.user.Email); err != nil {
		return s.showFault(err, again)
	}
	good := false
	err := s.DB.TxContext(r.Context(), func(ctx context.Context, tx db.Querier) error {
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
		return s.signInSucceeded(ctx, tx, l, v.user.Email)
	})
	if err != nil {
		return err
	}
	if !good {
		if err := s.countFailure(r.Context(), v.user.Email); err != nil {
			return err
		}
		return again("This code is wrong, or was used already.", http.StatusUnauthorized)
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// codeMatches reports whether a code is valid: from the authenticator, or a recovery code. Each works once.
func (s *Service) codeMatches(ctx context.Context, tx db.Querier, l login, code string) (bool, error) {
	seed, err := s.Seal.Unseal(l.totp, seedAAD(l.orgID, l.userID))
	if err != nil {
		return false, fmt.Errorf("read seed: %w", err)
	}
	code = cleanCode(code)
	if step, ok := totpStep(seed, code, s.Now(), l.step); ok {
		return useStep(ctx, tx, l.orgID, l.userID, step)
	}
	if len(code) != recoveryCodeLength {
		return false, nil
	}
	return useRecoveryCode(ctx, tx, l.orgID, l.userID, s.Seal.Digest("recovery "+code))
}

func seedAAD(org, user string) []byte { return []byte(org + "|account_logins|" + user + "|totp") }

// signInSucceeded deletes the failure count and writes an audit line.
func (s *Service) signInSucceeded(ctx context.Context, tx db.Querier, l login, email string) error {
	if err := dropFailures(ctx, tx, s.failureKey(email)); err != nil {
		return fmt.Errorf("delete failures: %w", err)
	}
	return s.writeAudit(ctx, tx, access.Principal{OrgID: l.orgID, UserID: l.userID, KeyName: "account page", Kind: Session}, "account.login", l.userID)
}

func (s *Service) failureKey(email string) string {
	return s.Seal.Digest("login " + strings.ToLower(email))
}

// checkAttempts refuses a sign-in after too many attempts from the source address or for the e-mail address.
func (s *Service) checkAttempts(ctx context.Context, email string) error {
	if s.Limiter != nil {
		if _, ok := s.Limiter.Take(op.ClientKey(op.ClientAddress(ctx)), 1, attemptLimit); !ok {
			return &fault{http.StatusTooManyRequests, "There were too many attempts from your address. Wait ten minutes."}
		}
	}
	f, err := failuresOf(ctx, s.DB.Read(ctx), s.failureKey(email))
	if err != nil {
		return fmt.Errorf("read failures: %w", err)
	}
	if left := f.blockedUntil.Sub(s.Now()); !f.blockedUntil.IsZero() && left > 0 {
		return &fault{http.StatusTooManyRequests, fmt.Sprintf("There were too many wrong attempts. Try again in %d seconds.", int((left+time.Second-1)/time.Second))}
	}
	return nil
}

// countFailure counts a failed sign-in.
func (s *Service) countFailure(ctx context.Context, email string) error {
	now := s.Now()
	return s.DB.Tx(ctx, func(tx db.Querier) error {
		f, err := failuresOf(ctx, tx, s.failureKey(email))
		if err != nil {
			return err
		}
		if now.Sub(f.at.Time) > 24*time.Hour {
			f.count = 0
		}
		f.count, f.at = f.count+1, db.At(now)
		if f.count >= failuresBeforeWait {
			f.blockedUntil = db.At(now.Add(waitAfter(f.count)))
		}
		return setFailures(ctx, tx, s.failureKey(email), f)
	})
}

// waitAfter returns how long sign-in is blocked after the n-th failure: 30 s, 1 min, 2 min, … up to an hour.
func waitAfter(n int) time.Duration {
	return min(longestWait, firstWait<<min(max(0, n-failuresBeforeWait), 10))
}

func (s *Service) logout(w http.ResponseWriter, r *http.Request, v *visitor) error {
	err := s.DB.Tx(r.Context(), func(tx db.Querier) error {
		_, err := dropSession(r.Context(), tx, v.org.ID, v.user.ID, v.session.ID)
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
