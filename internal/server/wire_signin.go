package server

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"soniq/internal/config"
	"soniq/internal/identity/auth"
	"soniq/internal/identity/signin"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
	"soniq/internal/telephony/voicemail"
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
		BaseURL: p.linkBase(), Brand: p.config.Brand, Log: p.log, Limiter: p.attempts(),
		Messages: messagePages{p}, Phones: sessionPhones{p}})
}

// sessionPhones implements signin.Phones. It reads the services at each call, because they are built later.
type sessionPhones struct{ p *Platform }

// InCall implements signin.Phones.
func (s sessionPhones) InCall(ctx context.Context, q db.Querier, org, user string) (bool, error) {
	states, err := s.p.agents.States(ctx, q, org, []string{user})
	return states[user] != nil && states[user].CallID != "", err
}

// SessionEnded implements signin.Phones.
func (s sessionPhones) SessionEnded(ctx context.Context, tx db.Querier, org, session string) error {
	return s.p.devices.SessionEnded(ctx, tx, org, session)
}

// messagePages implements signin.Messages.
type messagePages struct{ p *Platform }

// Message implements signin.Messages.
func (m messagePages) Message(ctx context.Context, id string) (signin.Message, error) {
	v, err := m.find(ctx, id)
	if err != nil {
		return signin.Message{}, err
	}
	out := signin.Message{ID: v.ID, From: callerShown(v), Mailbox: v.Mailbox.Name, Received: v.ReceivedAt.Time, Seconds: v.DurationSeconds}
	who, _ := access.From(ctx)
	if u, err := m.p.users.Get(ctx, m.p.db.Read(ctx), who.OrgID, who.UserID); err == nil {
		out.Received = out.Received.In(m.p.zoneOf(ctx, who.OrgID, u))
	}
	if v.Transcript != nil && v.Transcript.Text != nil {
		out.Text = *v.Transcript.Text
	}
	return out, nil
}

// Sound implements signin.Messages.
func (m messagePages) Sound(ctx context.Context, id string) (io.ReadSeekCloser, time.Time, error) {
	if _, err := m.find(ctx, id); err != nil {
		return nil, time.Time{}, err
	}
	v, f, _, err := m.p.voicemail.Open(ctx, access.Org(ctx), id)
	return f, v.ReceivedAt.Time, err
}

// find returns a message that the principal of the context may hear.
func (m messagePages) find(ctx context.Context, id string) (voicemail.Voicemail, error) {
	gone := op.NotFound("message")
	who, _ := access.From(ctx)
	if !slices.Contains(who.Scopes, access.CallsRead) {
		return voicemail.Voicemail{}, gone
	}
	hidden, err := visibility.Guard{DB: m.p.db}.Hidden(ctx, id)
	if err != nil {
		return voicemail.Voicemail{}, err
	}
	if hidden {
		return voicemail.Voicemail{}, gone
	}
	v, err := m.p.voicemail.Get(ctx, m.p.db.Read(ctx), who.OrgID, id)
	if db.IsNone(err) || err == nil && v.Status == voicemail.Deleted {
		return v, gone
	}
	return v, err
}

// linkBase returns the URL with which links begin, also in commands without a server.
func (p *Platform) linkBase() string {
	base, _ := p.config.LinkBase(p.config.HTTP)
	return base
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
