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

// This file joins what people log in to with the programs that they let act for them.

// buildOAuth makes the authorization server.
func (p *Platform) buildOAuth() {
	p.oauth = auth.NewOAuth(p.keys, auth.OAuthConfig{BaseURL: p.config.BaseURL, Callbacks: config.SplitList(p.config.OAuthCallbacks),
		Register: p.config.OAuthRegister == "on", ReuseWindow: p.config.OAuthReuse, Log: p.log, Limiter: access.NewLimiter(time.Now),
		Fetch: p.guard.Client(egress.Limits{Total: 10 * time.Second, Body: 32 << 10, Idle: 1})})
}

// buildAccount makes the pages on which people sign in.
func (p *Platform) buildAccount() {
	p.account = signin.New(signin.Config{DB: p.db, Orgs: p.orgs, Users: p.users, Keys: p.keys, OAuth: p.oauth, Seal: p.seal, Now: time.Now,
		BaseURL: cmp.Or(p.config.BaseURL, "http://"+p.config.HTTP), Brand: p.config.Brand, Log: p.log, Limiter: p.attempts()})
	p.users.MFA = p.account.MFA
}

// attempts counts who tries to sign in; nil where the operator lets everybody try.
func (p *Platform) attempts() *access.Limiter {
	if p.config.RateAttempts == 0 {
		return nil
	}
	return access.NewLimiter(time.Now)
}

// tidyEvery is how often what is over is forgotten: sessions, links, codes, tokens, and clients that nobody uses.
const tidyEvery = time.Hour

func (p *Platform) tidyPersons(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		if err := errors.Join(p.account.Sweep(ctx), p.oauth.Sweep(ctx)); err != nil && ctx.Err() == nil {
			p.log.Warn("what is over of sessions and tokens is not forgotten", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stepUp notes that a program lacked a scope, so that it asks the person again.
func (p *Platform) stepUp(ctx context.Context, who access.Principal) {
	if err := p.keys.StepUp(ctx, who); err != nil {
		p.log.Warn("step-up not noted", "request", op.RequestID(ctx), "err", err)
	}
}
