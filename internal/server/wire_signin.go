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
func (h *Platform) buildOAuth() {
	h.oauth = auth.NewOAuth(h.keys, auth.OAuthConfig{BaseURL: h.config.BaseURL, Callbacks: config.SplitList(h.config.OAuthCallbacks),
		Register: h.config.OAuthRegister == "on", ReuseWindow: h.config.OAuthReuse, Log: h.log, Limiter: access.NewLimiter(time.Now),
		Fetch: h.guard.Client(egress.Limits{Total: 10 * time.Second, Body: 32 << 10, Idle: 1})})
}

// buildAccount makes the pages on which people sign in.
func (h *Platform) buildAccount() {
	h.account = signin.New(signin.Config{DB: h.db, Orgs: h.orgs, Users: h.users, Keys: h.keys, OAuth: h.oauth, Seal: h.seal, Now: time.Now,
		BaseURL: cmp.Or(h.config.BaseURL, "http://"+h.config.HTTP), Brand: h.config.Brand, Log: h.log, Limiter: h.attempts()})
	h.users.MFA = h.account.MFA
}

// attempts counts who tries to sign in; nil where the operator lets everybody try.
func (h *Platform) attempts() *access.Limiter {
	if h.config.RateAttempts == 0 {
		return nil
	}
	return access.NewLimiter(time.Now)
}

// tidyEvery is how often what is over is forgotten: sessions, links, codes, tokens, and clients that nobody uses.
const tidyEvery = time.Hour

func (h *Platform) tidyPersons(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		if err := errors.Join(h.account.Sweep(ctx), h.oauth.Sweep(ctx)); err != nil && ctx.Err() == nil {
			h.log.Warn("what is over of sessions and tokens is not forgotten", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stepUp notes that a program lacked a scope, so that it asks the person again.
func (h *Platform) stepUp(ctx context.Context, p access.Principal) {
	if err := h.keys.StepUp(ctx, p); err != nil {
		h.log.Warn("step-up not noted", "request", op.RequestID(ctx), "err", err)
	}
}
