package queue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// throughput holds the figures from which the wait of a queue is estimated.
type throughput struct {
	talkSeconds, wrapUp, staffed int
	agentFree                    bool // an agent is free for the next caller
}

func (s *Service) currentThroughput(ctx context.Context, q db.Querier, k Queue) (throughput, error) {
	x, err := s.currentStats(ctx, q, k)
	if err != nil {
		return throughput{}, err
	}
	return s.throughputAt(ctx, q, k, x)
}

// throughputAt returns the throughput of a queue whose current figures are known.
func (s *Service) throughputAt(ctx context.Context, q db.Querier, k Queue, now Stats) (throughput, error) {
	talk, err := s.averageTalkSeconds(ctx, q, k)
	return throughput{talk, k.WrapUp, now.staffedAgents(), now.Agents.Available > 0 && now.CallersWaiting <= 1}, err
}

// talkCache caches the average talk time of today per queue for talkCacheTTL. Reading it again for each caller who
// enters would slow a busy day.
type talkCache struct {
	mu      sync.Mutex // guards byQueue
	byQueue map[queueKey]averageTalk
}

type averageTalk struct {
	seconds int
	read    time.Time
}

const (
	talkCacheTTL   = time.Second // how long a cached average is used
	maxCachedTalks = 20_000      // limits the number of cached queues
)

// averageTalkSeconds returns the average talk time of the queue's calls today, in seconds; 0 if there are none.
func (s *Service) averageTalkSeconds(ctx context.Context, q db.Querier, k Queue) (int, error) {
	p, t := queueKey{k.OrgID, k.ID}, &s.talkCache
	t.mu.Lock()
	known, ok := t.byQueue[p]
	t.mu.Unlock()
	if ok && time.Since(known.read) < talkCacheTTL {
		return known.seconds, nil
	}
	since, err := s.startOfDay(ctx, k.OrgID)
	if err != nil {
		return 0, err
	}
	const text = `SELECT COALESCE(AVG(talk_seconds), 0) FROM queue_entries WHERE org_id = $1 AND queue_id = $2 AND entered_at >= $3`
	var average float64
	if err := q.QueryRow(ctx, text, k.OrgID, k.ID, since).Scan(&average); err != nil {
		return 0, fmt.Errorf("average talks: %w", err)
	}
	now := averageTalk{int(average + 0.5), time.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byQueue == nil || len(t.byQueue) >= maxCachedTalks {
		t.byQueue = map[queueKey]averageTalk{}
	}
	t.byQueue[p] = now
	return now.seconds, nil
}

// estimatedWait returns the estimated wait in seconds at a position. As many calls come first as there are callers up
// to that position. Each agent takes one call in today's average of talk time plus wrap-up. It returns nil if the
// estimate is unknown: no agents, or no answered call today.
func (p throughput) estimatedWait(position int) *int {
	seconds := 0
	switch {
	case p.staffed == 0:
		return nil
	case p.agentFree && position == 1:
	case p.talkSeconds == 0:
		return nil
	default:
		seconds = (position*(p.talkSeconds+p.wrapUp) + p.staffed - 1) / p.staffed
	}
	return &seconds
}
