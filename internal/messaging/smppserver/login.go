package smppserver

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"

	"soniq/internal/platform/db"
	"soniq/internal/protocol/smpp"
)

var errLogin = errors.New("unknown system_id or wrong password")

// login authenticates an application. The error does not reveal whether the system_id or the password is wrong.
func (s *Service) login(ctx context.Context, l smpp.Login) (smpp.Account, error) {
	host, _, _ := net.SplitHostPort(l.Remote.String())
	if !s.guard.allowed(host) { // it connected before the ban
		return smpp.Account{}, errLogin
	}
	a, err := bySystemID(ctx, s.cfg.DB.Read(ctx), l.SystemID)
	if err != nil && !db.IsNone(err) {
		return smpp.Account{}, fmt.Errorf("find application: %w", err)
	}
	given := s.passwordDigest(l.SystemID, string(l.Password))
	if subtle.ConstantTimeCompare([]byte(given), []byte(a.digest)) != 1 || !a.Enabled {
		if d := s.guard.recordFailure(host); d > 0 {
			s.cfg.Log.Warn("smpp: address banned", "source", sourcePrefix(host), "for", d, "why", "too many wrong passwords")
		}
		return smpp.Account{}, errLogin
	}
	s.mu.Lock()
	s.textByAccount[a.account()] = a.textSettings()
	s.mu.Unlock()
	return smpp.Account{ID: a.account(), MaxBinds: a.MaxBinds, PerSecond: float64(a.RatePerSecond)}, nil
}

// onBound hurries the jobs that wait for an application.
func (s *Service) onBound(account string) {
	org, id := splitAccount(account)
	s.background("hurrying the deliveries to an application failed", func(ctx context.Context) error {
		return s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return s.cfg.Jobs.HurryLane(ctx, tx, Queue, org, id) })
	})
}

// onUnbound marks the responses that an application has received when its bind ends: all if it has sent unbind, else
// those older than responseGrace.
func (s *Service) onUnbound(account, bind string, why error) {
	before := db.At(s.cfg.Clock.Now())
	if !errors.Is(why, smpp.ErrUnbound) {
		before = db.At(s.cfg.Clock.Now().Add(-responseGrace))
	}
	org, _ := splitAccount(account)
	s.background("marking received responses of an application failed", func(ctx context.Context) error {
		return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
			const q = `UPDATE sms_submissions SET bind = NULL, node = NULL WHERE org_id = $1 AND bind = $2 AND created_at <= $3`
			_, err := tx.Exec(ctx, q, org, bind, before)
			return err
		})
	})
}
