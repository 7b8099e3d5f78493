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

// lastUses collects the last use of keys and grants, which are written in batches.
type lastUses struct {
	mu   sync.Mutex // guards last
	last map[string]lastUse
}

type lastUse struct {
	org    string
	at     db.Time
	source string
}

func (u *lastUses) record(id, org string, at db.Time, source netip.Addr) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[id] = lastUse{org, at, source.Unmap().String()}
}

func (u *lastUses) take() map[string]lastUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.last
	u.last = map[string]lastUse{}
	return taken
}

// Flush writes the last uses of keys and grants.
func (s *Service) Flush(ctx context.Context) error {
	last := s.lastUses.take()
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

// flushInterval is the longest delay of last_used_at.
const flushInterval = 10 * time.Second

// Run flushes every flushInterval until ctx ends, and once more at the end.
func (s *Service) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		if err := s.Flush(context.WithoutCancel(ctx)); err != nil {
			log.Error("last use of keys not stored", "err", err)
		}
	}
}
