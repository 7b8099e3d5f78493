package sms

import (
	"sync"
	"time"
)

// Limits in messages per second if the carrier has no own rates: for an organisation, and for one of its numbers.
const (
	perOrganisation = 10
	perNumber       = 1
)

// Limits of a pacer.
const (
	farthestTurn = 10 * time.Minute // a message that would have to wait longer asks again then
	maxTurns     = 100_000
	slack        = 100 * time.Millisecond // tolerance by which a message may be early if it missed its reserved time
)

// rateLimit is a limit per second for a key.
type limit struct {
	key       string
	perSecond float64
}

// sendPacer reserves a send time for each message, so that a backlog is not polled again and again.
type pace struct {
	mu    sync.Mutex           // guards the maps below
	next  map[string]time.Time // next free time of a key, including reservations
	real  map[string]time.Time // next free time of a key, by the messages that were sent
	turns map[string]time.Time // reserved times of waiting messages
}

// reserve returns 0 if a message of count segments may be sent now, else the time it has to wait.
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
		advance(p.next, now, count, limits) // each key advances on its own: a number with a large backlog reserves no time of its carrier
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

// freeAt returns the time at which all keys are free.
func (p *pace) latest(of map[string]time.Time, now time.Time, limits []limit) time.Time {
	for _, l := range limits {
		if t := of[l.key]; t.After(now) {
			now = t
		}
	}
	return now
}

// consume advances the keys by count messages, from a time on.
func advance(of map[string]time.Time, at time.Time, count int, limits []limit) {
	for _, l := range limits {
		from := of[l.key]
		if from.Before(at) {
			from = at
		}
		of[l.key] = from.Add(time.Duration(float64(count) / l.perSecond * float64(time.Second)))
	}
}

// sweep removes expired reservations and free keys, once there are many.
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

// paceDelay returns how long a message has to wait for the rate limits.
func (s *Service) wait(m Message, c Carrier) time.Duration {
	limits, count := []limit{{m.org, perOrganisation}, {m.org + " " + m.FromNumber, perNumber}}, 1
	if l, ok := c.(Limited); ok {
		all, number := l.Rates()
		limits, count = []limit{{m.carrier, all}, {m.carrier + " " + m.FromNumber, number}}, m.Segments
	}
	return s.pace.take(s.Now(), m.ID+" "+m.carrier, count, limits...)
}
