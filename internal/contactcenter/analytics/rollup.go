package analytics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
)

// rollupInterval is the time until ended calls are counted, if no query counts them earlier. Each round counts whole
// quarters of an hour, which takes long if they have thousands of calls. Run therefore pauses for rollupShare times as
// long as the last round took, if that is longer than rollupInterval. maxRollupPause limits the pause, because queries
// on other nodes do not see the calls earlier.
const (
	rollupInterval = 5 * time.Second
	rollupShare    = 200
	maxRollupPause = time.Minute
)

// restartOverlap is the time before the last count that a restart counts again, because a call ends shortly before
// its commit.
const restartOverlap = 10 * time.Minute

// CatchUp completes the counts of an earlier run, for each of the organisations.
func (s *Service) CatchUp(ctx context.Context, orgs []string) {
	for _, org := range orgs {
		if err := s.catchUp(ctx, org); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("calls not counted", "org", org, "err", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caughtUp = true
}

// Run counts ended calls until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := clock.NewTicker(rollupInterval)
	defer tick.Stop()
	var next time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		if began.Before(next) {
			continue
		}
		for _, org := range s.dirtyOrgs() {
			if err := s.rollUp(ctx, org); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("calls not counted", "org", org, "err", err)
			}
		}
		next = began.Add(min(rollupShare*time.Since(began), maxRollupPause))
	}
}

// prepared reports whether the organisation's counts from before this run are complete. For an organisation that is
// newer than the run, it completes them now.
func (s *Service) prepared(ctx context.Context, org string) (bool, error) {
	s.mu.Lock()
	ready, caught := s.ready[org], s.caughtUp
	s.mu.Unlock()
	if ready || !caught {
		return ready, nil
	}
	return true, s.catchUp(ctx, org)
}

// catchUp counts the quarters of calls that ended since the last count.
func (s *Service) catchUp(ctx context.Context, org string) error {
	var until db.Time
	err := s.cfg.DB.Read(ctx).QueryRow(ctx, `SELECT until FROM call_counted WHERE org_id = $1`, org).Scan(&until)
	if err != nil && !db.IsNone(err) {
		return err
	}
	var since db.Time
	if !until.IsZero() {
		since = db.At(until.Add(-restartOverlap))
	}
	if err := s.markSince(ctx, org, since); err != nil {
		return err
	}
	if err := s.rollUp(ctx, org); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready[org] = true
	return nil
}

// markSince marks the quarters of calls that ended since a time.
func (s *Service) markSince(ctx context.Context, org string, since db.Time) error {
	const q = `SELECT DISTINCT started_at - started_at % $3 FROM calls WHERE org_id = $1 AND ended_at IS NOT NULL AND ended_at >= $2`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, q, org, max(since.UnixMicro(), 0), quarter.Microseconds())
	if err != nil {
		return fmt.Errorf("find calls to count: %w", err)
	}
	defer rows.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for rows.Next() {
		var at int64
		if err := rows.Scan(&at); err != nil {
			return err
		}
		s.mark(org, at)
	}
	return rows.Err()
}

// rollUp counts the marked quarters of an organisation.
func (s *Service) rollUp(ctx context.Context, org string) error {
	turn := s.rollupLock(org)
	turn.Lock()
	defer turn.Unlock()
	began := db.At(s.cfg.Clock.Now())
	all := s.take(org)
	if len(all) == 0 {
		return nil
	}
	for at := range all {
		if err := s.count(ctx, org, at); err != nil {
			s.markAgain(org, all)
			return err
		}
		delete(all, at)
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, `UPDATE call_counted SET until = $2 WHERE org_id = $1 AND until < $2`, org, began)
		return err
	})
}

// markAgain marks quarters that could not be counted.
func (s *Service) markAgain(org string, all map[int64]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range all {
		s.mark(org, at)
	}
}

// errConcurrentCount means that another node counted meanwhile.
var errConcurrentCount = errors.New("counted by another node meanwhile")

// count counts a quarter as a whole. It reads outside the transaction, because other transactions would wait for the
// read. If another node counted meanwhile, it reads again.
func (s *Service) count(ctx context.Context, org string, at int64) error {
	for {
		version, err := s.version(ctx, org)
		if err != nil {
			return err
		}
		sums, err := s.sums(ctx, org, at)
		if err != nil {
			return err
		}
		err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return replaceCounts(ctx, tx, org, at, sums, version) })
		if !errors.Is(err, errConcurrentCount) {
			return err
		}
	}
}

func (s *Service) version(ctx context.Context, org string) (v int64, err error) {
	const q = `INSERT INTO call_counted (org_id, until, version) VALUES ($1, 0, 0) ON CONFLICT (org_id) DO NOTHING`
	err = s.cfg.DB.Read(ctx).QueryRow(ctx, `SELECT version FROM call_counted WHERE org_id = $1`, org).Scan(&v)
	if !db.IsNone(err) {
		return v, err
	}
	return 0, s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, q, org)
		return err
	})
}

// countKey identifies a count within a quarter.
type countKey struct{ dimension, key string }

// sums counts the calls that began in a quarter.
func (s *Service) sums(ctx context.Context, org string, at int64) (map[countKey]*Counts, error) {
	sums := map[countKey]*Counts{}
	from := time.UnixMicro(at)
	began := func(f *db.Filter) *db.Filter { return f.Between("started_at", db.At(from), db.At(from.Add(quarter))) }
	err := s.eachRecord(ctx, org, began, func(r record) {
		for _, d := range dimensions {
			for _, part := range r.parts(d) {
				if key, ok := part.key(d); ok {
					p := countKey{d, key}
					if sums[p] == nil {
						sums[p] = &Counts{}
					}
					sums[p].add(s.countsOf(org, part))
				}
			}
		}
	})
	return sums, err
}

// replaceCounts replaces the counts of a quarter. It returns errConcurrentCount if another node was first.
func replaceCounts(ctx context.Context, tx db.Querier, org string, at int64, sums map[countKey]*Counts, version int64) error {
	const turn = `UPDATE call_counted SET version = version + 1 WHERE org_id = $1 AND version = $2`
	r, err := tx.Exec(ctx, turn, org, version)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errConcurrentCount)
	}
	for _, d := range dimensions {
		if _, err := tx.Exec(ctx, `DELETE FROM call_counts WHERE org_id = $1 AND dimension = $2 AND at = $3`, org, d, at); err != nil {
			return err
		}
	}
	for p, c := range sums {
		if err := insertCounts(ctx, tx, org, at, p, c); err != nil {
			return fmt.Errorf("count calls by %s: %w", p.dimension, err)
		}
	}
	return nil
}

func insertCounts(ctx context.Context, tx db.Querier, org string, at int64, p countKey, c *Counts) error {
	const q = `INSERT INTO call_counts (org_id, dimension, at, key, total, inbound, outbound, internal, answered, missed, abandoned,
			voicemail, queued, in_time, ring_seconds, queue_seconds, talk_seconds, hold_seconds, callers)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`
	args := []any{org, p.dimension, at, p.key}
	for _, n := range c.numbers() {
		args = append(args, n)
	}
	_, err := tx.Exec(ctx, q, append(args, c.Callers.encode())...)
	return err
}
