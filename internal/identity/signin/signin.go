// Package signin serves the account pages for browsers. Users sign in, view and end sessions, keys and grants, create
// API keys, and grant access to OAuth clients. The pages work without JavaScript.
package signin

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
	"soniq/internal/platform/wiring"
)

// Config holds the dependencies of a Service.
type Config struct {
	DB      *db.DB
	Orgs    *org.Service
	Users   *user.Service
	Keys    *auth.Service
	OAuth   *auth.OAuth
	Seal    *seal.Seal
	Bus     *bus.Bus
	Clock   clock.Clock `wiring:"optional"`
	BaseURL string      // prefix of links; with "https://…" cookies are Secure
	Brand   string
	// Messages has the voicemail messages of signed-in people.
	Messages Messages
	Phones   Phones
	Limiter  *access.Limiter `wiring:"optional"` // limits sign-in attempts; nil: no limit
	Log      *slog.Logger
}

// Service serves the account pages. It is safe for concurrent use.
type Service struct {
	cfg       Config
	hashSlots chan struct{} // semaphore for password hashing
}

// New returns a service.
func New(c Config) *Service {
	wiring.Check(c)
	c.Clock = clock.OrSystem(c.Clock)
	return &Service{cfg: c, hashSlots: make(chan struct{}, 2)}
}

// Mount registers the pages.
func (s *Service) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /account/style.css", style)
	mux.HandleFunc("GET /invite/{token}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/account/welcome/"+r.PathValue("token"), http.StatusSeeOther)
	})
	for pattern, h := range map[string]handler{
		"GET /account/login": s.showLogin, "POST /account/login": s.login, "POST /account/code": s.secondStep,
		"GET /account/welcome/{token}": s.showWelcome, "POST /account/welcome/{token}": s.welcome,
		"GET " + auth.AuthorizePath: s.showConsent, "POST " + auth.AuthorizePath: s.consent,
	} {
		mux.HandleFunc(pattern, s.withVisitor(h))
	}
	for pattern, h := range map[string]handler{
		"GET /account": s.overview, "GET /account/keys": s.keys, "POST /account/keys": s.createKey,
		"POST /account/keys/{id}/revoke": s.revokeKey,
		"POST /account/keys/{id}/rotate": s.rotateKey, "GET /account/assistants": s.assistants,
		"POST /account/assistants/{id}/revoke": s.revokeAssistant,
		"GET /account/security":                s.security, "POST /account/password": s.changePassword,
		"POST /account/totp/start": s.startTOTP, "POST /account/totp/confirm": s.confirmTOTP, "POST /account/totp/off": s.stopTOTP,
		"POST /account/sessions/{id}/end": s.signOutBrowser,
		"GET " + MessagePath + "{id}":     s.showMessage, "GET " + MessagePath + "{id}/audio": s.messageSound,
		"POST /account/logout": s.logout, "GET " + op.ConfirmPath: s.showConfirm, "POST " + op.ConfirmPath: s.confirmAgain,
	} {
		mux.HandleFunc(pattern, s.withVisitor(s.signedIn(h)))
	}
}

// RemoveUser deletes the sign-in data of a removed user.
func (s *Service) RemoveUser(ctx context.Context, tx db.Querier, org, user string) error {
	for _, forget := range []func(context.Context, db.Querier, string, string) error{s.endSessions, dropRecovery, dropLinks, dropLogin} {
		if err := forget(ctx, tx, org, user); err != nil {
			return fmt.Errorf("delete sign-in data: %w", err)
		}
	}
	return nil
}

// MFA reports which of the users have a second factor.
func (s *Service) MFA(ctx context.Context, q db.Querier, org string, users []string) (map[string]bool, error) {
	return withTOTP(ctx, q, org, users)
}

// HasPassword reports whether a user has chosen a password.
func (s *Service) HasPassword(ctx context.Context, q db.Querier, org, user string) (bool, error) {
	l, err := getLogin(ctx, q, org, user)
	if db.IsNone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find login: %w", err)
	}
	return l.hash != "", nil
}

// Sweep deletes expired sessions, links and failed attempts. It returns how many. The sessions of users who are in a call stay until the
// next time, because the end of a session ends its telephone.
func (s *Service) Sweep(ctx context.Context) (gone int64, err error) {
	now := s.cfg.Clock.Now()
	sessions, err := s.sweepSessions(ctx, db.At(now))
	if err != nil {
		return sessions, err
	}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		gone = 0
		return sweep(ctx, tx, &gone, db.At(now), db.At(now.Add(-24*time.Hour)))
	})
	return sessions + gone, err
}
