package smpp

import (
	"context"
	"sync"
	"time"
)

// Pauses after an answer that asks us to slow down: the first, and the longest.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// A pacer spaces what is sent, and stops it when the other side asks for that.
type pacer struct {
	every time.Duration // between two; 0: no limit
	mu    sync.Mutex
	next  time.Time
	until time.Time     // nothing is sent before
	pause time.Duration // the last one; 0 when all is well
}

// wait returns when the next may be sent.
func (p *pacer) wait(ctx context.Context) error {
	for at := p.reserve(); ; at = p.paused() {
		d := time.Until(at)
		if d <= 0 {
			return nil
		}
		t := time.NewTimer(d)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}

func (p *pacer) reserve() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := time.Now()
	for _, t := range []time.Time{p.next, p.until} {
		if t.After(at) {
			at = t
		}
	}
	p.next = at.Add(p.every)
	return at
}

func (p *pacer) paused() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until
}

// heed learns from an answer: each that asks to slow down doubles the pause, one that is well ends it. It returns how long
// nothing is sent now.
func (p *pacer) heed(s Status) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case !s.slowDown():
		if !now.Before(p.until) {
			p.pause = 0
		}
		return 0
	case now.Before(p.until): // one of those that were under way already
	default:
		p.pause = min(max(firstPause, 2*p.pause), longestPause)
		p.until = now.Add(p.pause)
	}
	return p.until.Sub(now)
}

// tokens lets so many in per second, and as many at once.
type tokens struct {
	mu              sync.Mutex // guards what follows
	perSecond, left float64
	at              time.Time
}

// set changes how many are let in.
func (t *tokens) set(perSecond float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.perSecond = perSecond
}

// take tells whether one more is let in; perSecond 0 lets all in.
func (t *tokens) take(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.perSecond <= 0 {
		return true
	}
	most := max(1, t.perSecond)
	if t.at.IsZero() {
		t.left = most
	} else {
		t.left = min(most, t.left+t.perSecond*now.Sub(t.at).Seconds())
	}
	t.at = now
	if t.left < 1 {
		return false
	}
	t.left--
	return true
}
