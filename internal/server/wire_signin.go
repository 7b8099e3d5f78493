package server

import (
	"cmp"
	"context"
	"errors"
	"time"

	"soniq/internal/config"
	"soniq/internal/identity/auth"
	"soniq/internal/identity/signin"
	"soniq/internal/platform/access"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
)

// Connects sign-in and the OAuth server with users and keys.

// buildOAuth constructs the authorization server.
func (p *Platform) buildOAuth() {
	p.oauth = auth.NewOAuth(p.keys, auth.OAuthConfig{BaseURL: p.config.BaseURL, Callbacks: config.SplitList(p.config.OAuthCallbacks),
		Register: p.config.OAuthRegister == "on", ReuseWindow: p.config.OAuthReuse, Log: p.log, Limiter: access.NewLimiter(time.Now),
		Fetch: p.guard.Client(egress.Limits{Total: 10 * time.Second, Body: 32 << 10, Idle: 1})})
}

// buildSignin constructs the sign-in pages.
func (p *Platform) buildSignin() {
	p.signin = signin.New(signin.Config{DB: p.db, Orgs: p.orgs, Users: p.users, Keys: p.keys, OAuth: p.oauth, Seal: p.seal, Bus: p.bus,
		BaseURL: cmp.Or(p.config.BaseURL, "http://"+p.config.HTTP), Brand: p.config.Brand, Log: p.log, Limiter: p.attempts()})
}

// attempts returns the limiter of sign-in attempts, or nil if the operator has set no limit.
func (p *Platform) attempts() *access.Limiter {
	if p.config.RateAttempts == 0 {
		return nil
	}
	return access.NewLimiter(time.Now)
}

// cleanupInterval is the interval for the removal of expired sessions, links, codes, tokens and unused clients.
const cleanupInterval = time.Hour

func (p *Platform) removeExpiredLogins(ctx context.Context) {
	tick := time.NewTicker(cleanupInterval)
	defer tick.Stop()
	for {
		if err := p.sweepLogins(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("what is over of sessions and tokens is not forgotten", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweepLogins deletes expired sessions and tokens. It deletes nothing while the clock is not trusted.
func (p *Platform) sweepLogins(ctx context.Context) error {
	if p.clock.MayDelete() != nil {
		return nil // the gate logs the reason
	}
	sessions, err := p.signin.Sweep(ctx)
	p.logRemoved("sign-in sessions, links and failures", sessions)
	tokens, err2 := p.oauth.Sweep(ctx)
	p.logRemoved("OAuth codes, tokens and clients", tokens)
	return errors.Join(err, err2)
}

// stepUp records that a client lacked a scope, so that it asks the user again.
func (p *Platform) stepUp(ctx context.Context, who access.Principal) {
	if err := p.keys.StepUp(ctx, who); err != nil {
		p.log.Warn("step-up not noted", "request", op.RequestID(ctx), "err", err)
	}
}

// credentials checks credentials of every kind that were admitted before.
type credentials struct{ p *Platform }

// Revalidate implements eventstream.Credentials and crm.Credentials.
func (c credentials) Revalidate(ctx context.Context, who access.Principal) error {
	if who.Kind == access.BrowserSession {
		return c.p.signin.RevalidateSession(ctx, who)
	}
	return c.p.keys.Revalidate(ctx, who)
}

// StillHeld implements eventstream.Credentials and crm.Credentials. What was set up by a session outlives it, like its user.
func (c credentials) StillHeld(ctx context.Context, h access.Holder) ([]access.Scope, error) {
	return c.p.keys.StillHeld(ctx, h)
}
