package sms

import (
	"sync"
	"time"
)

// The most messages that are handed over in a second where the carrier has no rates of its own: of an organisation, and from one
// number of it.
const (
	perOrganisation = 10
	perNumber       = 1
)

// Bounds of a pace.
const (
	farthestTurn = 10 * time.Minute // a message that would have to wait longer asks again then
	maxTurns     = 100_000
	slack        = 100 * time.Millisecond // how far the pace may be ahead where a turn was missed by a moment
)

// A limit is how many may go in a second of what has this key.
type limit struct {
	key       string
	perSecond float64
}

// A pace gives messages their turns: each is told once when it may go, so that a backlog is not looked at again and again.
type pace struct {
	mu    sync.Mutex           // guards the three below
	next  map[string]time.Time // when the next turn of a key may be
	real  map[string]time.Time // when the next may go, by what has gone
	turns map[string]time.Time // of messages that wait
}

// take returns 0 where a message that counts as so many may go now, or how long it has to wait.
func (p *pace) take(now time.Time, id string, count int, limits ...limit) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next, p.real, p.turns = map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	}
	at, waits := p.turns[id]
	if !waits {
		if at = p.latest(p.next, now, limits); at.Sub(now) > farthestTurn || len(p.turns) >= maxTurns {
			return min(at.Sub(now), farthestTurn) + time.Second
		}
		advance(p.next, now, count, limits) // each key from where it is: a number that is far behind keeps no turns of its carrier
	}
	if real := p.latest(p.real, now, limits).Add(-slack); real.After(at) {
		at = real
	}
	if at.After(now) {
		p.turns[id] = at
		return at.Sub(now)
	}
	delete(p.turns, id)
	advance(p.real, now, count, limits)
	p.forget(now)
	return 0
}

// latest is when all keys are free.
func (p *pace) latest(of map[string]time.Time, now time.Time, limits []limit) time.Time {
	for _, l := range limits {
		if t := of[l.key]; t.After(now) {
			now = t
		}
	}
	return now
}

// advance uses the keys up from a time on.
func advance(of map[string]time.Time, at time.Time, count int, limits []limit) {
	for _, l := range limits {
		from := of[l.key]
		if from.Before(at) {
			from = at
		}
		of[l.key] = from.Add(time.Duration(float64(count) / l.perSecond * float64(time.Second)))
	}
}

// forget drops what is over, now and then: turns of messages that never came, and keys that are free.
func (p *pace) forget(now time.Time) {
	if len(p.real)+len(p.turns) < maxTurns/2 {
		return
	}
	for _, all := range []map[string]time.Time{p.next, p.real} {
		for key, at := range all {
			if at.Before(now) {
				delete(all, key)
			}
		}
	}
	for id, at := range p.turns {
		if now.Sub(at) > farthestTurn {
			delete(p.turns, id)
		}
	}
}

// wait is how long a message has to wait for its turn.
func (s *Service) wait(m Message, c Carrier) time.Duration {
	limits, count := []limit{{m.org, perOrganisation}, {m.org + " " + m.FromNumber, perNumber}}, 1
	if l, ok := c.(Limited); ok {
		all, number := l.Rates()
		limits, count = []limit{{m.carrier, all}, {m.carrier + " " + m.FromNumber, number}}, m.Segments
	}
	return s.pace.take(s.Now(), m.ID+" "+m.carrier, count, limits...)
}
