package queue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// A pace is how fast a queue moves.
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

// paceAt is the pace of a queue whose figures of now are known.
func (s *Service) paceAt(ctx context.Context, q db.Querier, k Queue, now Stats) (pace, error) {
	talk, err := s.talk(ctx, q, k)
	return pace{talk, k.WrapUp, now.staffed(), now.Agents.Available > 0 && now.CallersWaiting <= 1}, err
}

// The talks of today, by queue, as they were a moment ago: to work them out anew for each caller who enters would make a busy day slow.
type talks struct {
	mu sync.Mutex // guards of
	of map[place]talk
}

type talk struct {
	seconds int
	read    time.Time
}

const (
	talkGood = time.Second // how long an average is good for
	maxTalks = 20_000      // bounds the queues whose average is kept
)

// talk is for how long agents spoke with a queue's callers today, on average.
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

// wait estimates how long the caller at a position waits: as many calls are before them as callers, and each agent takes one in the
// time a call and its wrap-up took today on average. nil where that is not known.
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
