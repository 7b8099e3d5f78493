package auth

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// uses remembers when keys and grants were last used until that is written, many at a time.
type uses struct {
	mu   sync.Mutex // guards last
	last map[string]use
}

type use struct {
	org    string
	at     db.Time
	source string
}

func (u *uses) note(id, org string, at db.Time, source netip.Addr) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[id] = use{org, at, source.Unmap().String()}
}

func (u *uses) take() map[string]use {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.last
	u.last = map[string]use{}
	return taken
}

// Flush writes when keys were last used.
func (s *Service) Flush(ctx context.Context) error {
	last := s.used.take()
	if len(last) == 0 {
		return nil
	}
	return s.db.Tx(ctx, func(tx db.Querier) error {
		for id, u := range last {
			note := setUsed
			if strings.HasPrefix(id, grantPrefix) {
				note = setGrantUsed
			}
			if err := note(ctx, tx, u.org, id, u.at, u.source); err != nil {
				return err
			}
		}
		return nil
	})
}

// flushEvery is how late last_used_at may be.
const flushEvery = 10 * time.Second

// Run flushes until the context ends, and then once more.
func (s *Service) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		if err := s.Flush(context.WithoutCancel(ctx)); err != nil {
			log.Error("use of keys not written", "err", err)
		}
	}
}
