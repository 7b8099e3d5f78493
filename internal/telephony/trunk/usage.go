package trunk

import (
	"context"
	"fmt"
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// usage tells the limiter, once per organisation, what earlier runs of the process used up of the day.
type usage struct {
	started time.Time // what ended before was counted by an earlier run
	mu      sync.Mutex
	known   map[string]*sync.Mutex // nil once told
}

// recall tells the limiter what the organisation used up before this process started. Where the database does not
// answer the call is an error: a cap that is not known is not lifted.
func (g *Gate) recall(ctx context.Context, org string, limit Limit) error {
	turn := g.used.turn(org)
	if turn == nil {
		return nil
	}
	turn.Lock()
	defer turn.Unlock()
	if g.used.told(org) {
		return nil
	}
	d, err := usedToday(ctx, g.trunks.db.Read(db.Detached(ctx)), org, midnight(g.trunks.now(), limit.Zone), g.used.started)
	if err != nil {
		return err
	}
	g.limits.Used(org, limit, d)
	g.used.mu.Lock()
	g.used.known[org] = nil
	g.used.mu.Unlock()
	return nil
}

// turn is what to hold while asking for an organisation; nil where it was asked for.
func (u *usage) turn(org string) *sync.Mutex {
	u.mu.Lock()
	defer u.mu.Unlock()
	turn, seen := u.known[org]
	if !seen {
		turn = &sync.Mutex{}
		u.known[org] = turn
	}
	return turn
}

func (u *usage) told(org string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	turn, seen := u.known[org]
	return seen && turn == nil
}

// usedToday is the time of calls over trunks to the outside that ended between two times.
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
