package main

import (
	"context"
	"time"

	"soniq/access"
	"soniq/auth"
	"soniq/egress"
	"soniq/op"
)

// This file joins what people log in to with the programs that they let act for them.

// buildOAuth makes the authorization server.
func (h *house) buildOAuth() {
	h.oauth = auth.NewOAuth(h.keys, auth.OAuthConfig{BaseURL: h.config.BaseURL, Callbacks: list(h.config.OAuthCallbacks),
		Register: h.config.OAuthRegister == "on", ReuseWindow: h.config.OAuthReuse, Log: h.log, Limiter: access.NewLimiter(time.Now),
		Fetch: h.guard.Client(egress.Limits{Total: 10 * time.Second, Body: 32 << 10, Idle: 1})})
}

// stepUp notes that a program lacked a scope, so that it asks the person again.
func (h *house) stepUp(ctx context.Context, p access.Principal) {
	if err := h.keys.StepUp(ctx, p); err != nil {
		h.log.Warn("step-up not noted", "request", op.RequestID(ctx), "err", err)
	}
}
