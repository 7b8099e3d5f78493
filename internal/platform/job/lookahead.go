package job

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// lookahead finds the next jobs of all queues of this process with one statement. Idle runners ask it at each poll, so
// the cost of an idle process does not grow with its number of queues. It is safe for concurrent use.
type lookahead struct {
	mu     sync.Mutex // held during the statement, so that runners that ask at the same time share its result
	queues []string   // queues with a runner, sorted
	looked time.Time
	first  map[string]time.Time // when the earliest ready job of each queue becomes due; no entry: no job is ready
}

// add makes later looks include a queue.
func (l *lookahead) add(queue string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, ok := slices.BinarySearch(l.queues, queue); !ok {
		l.queues = slices.Insert(l.queues, i, queue)
	}
	l.looked = time.Time{}
}

// next returns when the earliest ready job of a queue becomes due, or the zero time if no job is ready. The result is
// at most half a poll old. Jobs whose lease has expired become ready before.
func (l *lookahead) next(ctx context.Context, d *db.DB, queue string, now time.Time) (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.looked) < poll/2 {
		return l.first[queue], nil
	}
	first, lease, err := firstJobs(ctx, d.Read(ctx), l.queues)
	if err == nil && !lease.IsZero() && lease.Before(now) {
		if err = expire(ctx, d, now); err == nil {
			first, _, err = firstJobs(ctx, d.Read(ctx), l.queues)
		}
	}
	if err != nil {
		return time.Time{}, err
	}
	l.first, l.looked = first, time.Now()
	return first[queue], nil
}

// firstJobsOf returns the statement of firstJobs for a number of queues. The last row is the earliest end of a lease.
func firstJobsOf(queues int) string {
	// tenant: work is claimed for all organisations
	return `SELECT v.column1, (SELECT min(j.run_at) FROM jobs j WHERE j.queue = v.column1 AND j.state = 0)
		FROM (VALUES ` + db.Values(1, queues, "") + `) AS v
		UNION ALL SELECT '', (SELECT min(j.lease_until) FROM jobs j WHERE j.state = 1)`
}

// firstJobs returns the time of the earliest ready job of each queue that has one, and the earliest end of a lease.
// The lease is zero if no job runs.
func firstJobs(ctx context.Context, tx db.Querier, queues []string) (first map[string]time.Time, lease time.Time, err error) {
	args := make([]any, 0, len(queues))
	for _, q := range queues {
		args = append(args, q)
	}
	rows, err := tx.Query(ctx, firstJobsOf(len(queues)), args...)
	if err != nil {
		return nil, lease, fmt.Errorf("find next jobs: %w", err)
	}
	defer rows.Close()
	first = map[string]time.Time{}
	for rows.Next() {
		var queue string
		var at db.Time
		if err := rows.Scan(&queue, &at); err != nil {
			return nil, lease, err
		}
		switch {
		case at.IsZero():
		case queue == "":
			lease = at.Time
		default:
			first[queue] = at.Time
		}
	}
	return first, lease, rows.Err()
}
