package trunk

import (
	"context"
	"fmt"
	"sync"
	"time"

	"soniq/internal/platform/clock/localday"
	"soniq/internal/platform/db"
)

// earlierUsage adds to the limiter, once per organisation, the call time of today from before this process.
type earlierUsage struct {
	started   time.Time // calls that ended before were counted by an earlier process
	mu        sync.Mutex
	loadLocks map[string]*sync.Mutex // by organisation; nil once loaded
}

// loadUsage adds to the limiter the call time of an organisation from before this process. If the database fails, the
// call is refused with the error, because an unknown usage must not lift the cap.
func (g *OutboundGate) loadUsage(ctx context.Context, org string, limit Limit) error {
	turn := g.usage.loadLock(org)
	if turn == nil {
		return nil
	}
	turn.Lock()
	defer turn.Unlock()
	if g.usage.loaded(org) {
		return nil
	}
	d, err := usedToday(ctx, g.trunks.db.Read(db.Detached(ctx)), org, localday.Start(g.trunks.now(), limit.Zone), g.usage.started)
	if err != nil {
		return err
	}
	g.limits.AddUsed(org, limit, d)
	g.usage.mu.Lock()
	g.usage.loadLocks[org] = nil
	g.usage.mu.Unlock()
	return nil
}

// loadLock returns the lock to hold while the usage of an organisation is loaded; nil if it is loaded already.
func (u *earlierUsage) loadLock(org string) *sync.Mutex {
	u.mu.Lock()
	defer u.mu.Unlock()
	turn, seen := u.loadLocks[org]
	if !seen {
		turn = &sync.Mutex{}
		u.loadLocks[org] = turn
	}
	return turn
}

func (u *earlierUsage) loaded(org string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	turn, seen := u.loadLocks[org]
	return seen && turn == nil
}

// usedToday returns the time of calls over trunks to the public network that ended between two times.
func usedToday(ctx context.Context, q db.Querier, org string, from, to time.Time) (time.Duration, error) {
	if !from.Before(to) {
		return 0, nil
	}
	const text = `SELECT COALESCE(SUM(l.ended_at - l.started_at), 0) FROM calls c
		JOIN legs l ON l.org_id = c.org_id AND l.call_id = c.id
		WHERE c.org_id = $1 AND c.ended_at >= $2 AND c.ended_at < $3 AND l.trunk_id IS NOT NULL AND l.role <> 'caller'
			AND l.ended_at IS NOT NULL`
	var micros int64
	if err := q.QueryRow(ctx, text, org, db.At(from), db.At(to)).Scan(&micros); err != nil {
		return 0, fmt.Errorf("sum up today's outbound calls: %w", err)
	}
	return time.Duration(micros) * time.Microsecond, nil
}
