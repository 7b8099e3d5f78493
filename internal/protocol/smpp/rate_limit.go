package smpp

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Pauses after a throttling response: the first and the longest.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// pacer spaces sent messages, and pauses when the peer throttles us.
type pacer struct {
	interval time.Duration // interval between two messages; 0: no limit
	mu       sync.Mutex
	next     time.Time
	pauseEnd time.Time     // end of the pause
	pause    time.Duration // length of the last pause; 0 after success
}

// wait returns when the next message may be sent.
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
	for _, t := range []time.Time{p.next, p.pauseEnd} {
		if t.After(at) {
			at = t
		}
	}
	p.next = at.Add(p.interval)
	return at
}

func (p *pacer) paused() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pauseEnd
}

// update applies the status of a response. Each throttling response doubles the pause, and a success resets it. It
// returns the remaining pause.
func (p *pacer) update(s Status) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case !s.isThrottling():
		if !now.Before(p.pauseEnd) {
			p.pause = 0
		}
		return 0
	case now.Before(p.pauseEnd): // response to a message sent before the pause began
	default:
		p.pause = min(max(firstPause, 2*p.pause), longestPause)
		p.pauseEnd = now.Add(p.pause)
	}
	return p.pauseEnd.Sub(now)
}

// messageRate returns a limit of messages per second and its burst, one second's worth. 0 messages per second is no limit.
func messageRate(perSecond float64) (rate.Limit, int) {
	if perSecond <= 0 {
		return rate.Inf, 1
	}
	return rate.Limit(perSecond), max(1, int(perSecond))
}

// setMessageRate returns a full limiter if l is nil. Otherwise it changes the rate of l, which an account's binds share.
func setMessageRate(l *rate.Limiter, perSecond float64) *rate.Limiter {
	limit, burst := messageRate(perSecond)
	if l == nil {
		return rate.NewLimiter(limit, burst)
	}
	l.SetLimit(limit)
	l.SetBurst(burst)
	return l
}
