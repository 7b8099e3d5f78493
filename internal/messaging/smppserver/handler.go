package smppserver

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/protocol/smpp"
)

// handler passes what the SMPP server reports on to the service. It implements smpp.Handler and smpp.Binds.
type handler struct{ s *Service }

func (h handler) Authenticate(ctx context.Context, l smpp.Login) (smpp.Account, error) {
	return h.s.login(ctx, l)
}

func (h handler) Message(ctx context.Context, in smpp.Incoming) error {
	return h.s.handleMessage(ctx, in)
}

func (h handler) Query(ctx context.Context, account, id string) (smpp.QueryResponse, error) {
	return h.s.queryStatus(ctx, account, id)
}

func (h handler) NewID() string { return db.NewID("sms") }

func (h handler) AllowSource(host string) bool { return h.s.guard.allowed(host) }

func (h handler) TextOf(account string) smpp.TextSettings { return h.s.textSettings(account) }

func (h handler) Bound(account string) { h.s.onBound(account) }

func (h handler) Unbound(account, bind string, why error) { h.s.onUnbound(account, bind, why) }
