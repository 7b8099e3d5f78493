package queue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// throughput holds the figures from which the wait of a queue is estimated.
type pace struct {
	talk, wrapUp, staffed int
	atOnce                bool // an agent is free for the next caller
}

func (s *Service) pace(ctx context.Context, q db.Querier, k Queue) (pace, error) {
	x, err := s.moment(ctx, q, k)
	if err != nil {
		return pace{}, err
	}
	return s.paceAt(ctx, q, k, x)
}

// throughputAt returns the throughput of a queue whose current figures are known.
func (s *Service) paceAt(ctx context.Context, q db.Querier, k Queue, now Stats) (pace, error) {
	talk, err := s.talk(ctx, q, k)
	return pace{talk, k.WrapUp, now.staffed(), now.Agents.Available > 0 && now.CallersWaiting <= 1}, err
}

// talkCache caches the average talk time of today per queue for talkCacheTTL. Reading it again for each caller who
// enters would slow a busy day.
type talks struct {
	mu sync.Mutex // guards byQueue
	of map[place]talk
}

type talk struct {
	seconds int
	read    time.Time
}

const (
	talkGood = time.Second // how long a cached average is used
	maxTalks = 20_000      // limits the number of cached queues
)

// averageTalkSeconds returns the average talk time of the queue's calls today, in seconds; 0 if there are none.
func (s *Service) talk(ctx context.Context, q db.Querier, k Queue) (int, error) {
	p, t := place{k.OrgID, k.ID}, &s.talks
	t.mu.Lock()
	known, ok := t.of[p]
	t.mu.Unlock()
	if ok && time.Since(known.read) < talkGood {
		return known.seconds, nil
	}
	since, err := s.midnight(ctx, k.OrgID)
	if err != nil {
		return 0, err
	}
	const text = `SELECT COALESCE(AVG(talk_seconds), 0) FROM queue_entries WHERE org_id = $1 AND queue_id = $2 AND entered_at >= $3`
	var average float64
	if err := q.QueryRow(ctx, text, k.OrgID, k.ID, since).Scan(&average); err != nil {
		return 0, fmt.Errorf("average talks: %w", err)
	}
	now := talk{int(average + 0.5), time.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil || len(t.of) >= maxTalks {
		t.of = map[place]talk{}
	}
	t.of[p] = now
	return now.seconds, nil
}

// estimatedWait returns the estimated wait in seconds at a position. As many calls come first as there are callers up
// to that position. Each agent takes one call in today's average of talk time plus wrap-up. It returns nil if the
// estimate is unknown: no agents, or no answered call today.
func (p pace) wait(position int) *int {
	seconds := 0
	switch {
	case p.staffed == 0:
		return nil
	case p.atOnce && position == 1:
	case p.talk == 0:
		return nil
	default:
		seconds = (position*(p.talk+p.wrapUp) + p.staffed - 1) / p.staffed
	}
	return &seconds
}
