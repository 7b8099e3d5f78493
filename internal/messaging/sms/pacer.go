package sms

import (
	"sync"
	"time"
)

// Limits in messages per second if the carrier has no own rates: for an organisation, and for one of its numbers.
const (
	orgRatePerSecond    = 10
	numberRatePerSecond = 1
)

// Limits of a pacer.
const (
	maxReservation  = 10 * time.Minute // a message that would have to wait longer asks again then
	maxReservations = 100_000
	earlyTolerance  = 100 * time.Millisecond // tolerance by which a message may be early if it missed its reserved time
)

// rateLimit is a limit per second for a key.
type rateLimit struct {
	key       string
	perSecond float64
}

// sendPacer reserves a send time for each message, so that a backlog is not polled again and again.
type sendPacer struct {
	mu       sync.Mutex           // guards the maps below
	reserved map[string]time.Time // next free time of a key, including reservations
	actual   map[string]time.Time // next free time of a key, by the messages that were sent
	waiting  map[string]time.Time // reserved times of waiting messages
}

// reserve returns 0 if a message of count segments may be sent now, else the time it has to wait.
func (p *sendPacer) reserve(now time.Time, id string, count int, limits ...rateLimit) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reserved == nil {
		p.reserved, p.actual, p.waiting = map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	}
	at, waits := p.waiting[id]
	if !waits {
		if at = p.freeAt(p.reserved, now, limits); at.Sub(now) > maxReservation || len(p.waiting) >= maxReservations {
			return min(at.Sub(now), maxReservation) + time.Second
		}
		// each key advances on its own: a number with a large backlog reserves no time of its carrier
		consume(p.reserved, now, count, limits)
	}
	if real := p.freeAt(p.actual, now, limits).Add(-earlyTolerance); real.After(at) {
		at = real
	}
	if at.After(now) {
		p.waiting[id] = at
		return at.Sub(now)
	}
	delete(p.waiting, id)
	consume(p.actual, now, count, limits)
	p.sweep(now)
	return 0
}

// freeAt returns the time at which all keys are free.
func (p *sendPacer) freeAt(of map[string]time.Time, now time.Time, limits []rateLimit) time.Time {
	for _, l := range limits {
		if t := of[l.key]; t.After(now) {
			now = t
		}
	}
	return now
}

// consume advances the keys by count messages, from a time on.
func consume(of map[string]time.Time, at time.Time, count int, limits []rateLimit) {
	for _, l := range limits {
		from := of[l.key]
		if from.Before(at) {
			from = at
		}
		of[l.key] = from.Add(time.Duration(float64(count) / l.perSecond * float64(time.Second)))
	}
}

// sweep removes expired reservations and free keys, once there are many.
func (p *sendPacer) sweep(now time.Time) {
	if len(p.actual)+len(p.waiting) < maxReservations/2 {
		return
	}
	for _, all := range []map[string]time.Time{p.reserved, p.actual} {
		for key, at := range all {
			if at.Before(now) {
				delete(all, key)
			}
		}
	}
	for id, at := range p.waiting {
		if now.Sub(at) > maxReservation {
			delete(p.waiting, id)
		}
	}
}

// paceDelay returns how long a message has to wait for the rate limits.
func (s *Service) paceDelay(m Message, c Carrier) time.Duration {
	limits, count := []rateLimit{{m.org, orgRatePerSecond}, {m.org + " " + m.FromNumber, numberRatePerSecond}}, 1
	if l, ok := c.(RateLimited); ok {
		all, number := l.Rates()
		limits, count = []rateLimit{{m.carrier, all}, {m.carrier + " " + m.FromNumber, number}}, m.Segments
	}
	return s.pacer.reserve(s.cfg.Clock.Now(), m.ID+" "+m.carrier, count, limits...)
}
