package sms

import (
	"sync"
	"time"
)

// The most messages that are handed to carriers: 10 a second for an organisation, 1 a second from a number of it.
const (
	perOrganisation = 10
	perNumber       = 1
	paceWindow      = time.Second
	maxPaced        = 10_000 // keys kept; older ones than the window are dropped then
)

// A pace remembers what was sent in the last second.
type pace struct {
	mu   sync.Mutex // guards last
	last map[string][]time.Time
}

// take counts one message and returns 0, or how long it has to wait.
func (p *pace) take(now time.Time, org, from string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string][]time.Time{}
	}
	all, one := p.recent(now, org), p.recent(now, org+" "+from)
	if wait := max(room(all, perOrganisation, now), room(one, perNumber, now)); wait > 0 {
		return wait
	}
	p.last[org], p.last[org+" "+from] = append(all, now), append(one, now)
	p.forget(now)
	return 0
}

// room is when one more fits in.
func room(recent []time.Time, most int, now time.Time) time.Duration {
	if len(recent) < most {
		return 0
	}
	return recent[len(recent)-most].Add(paceWindow).Sub(now)
}

func (p *pace) recent(now time.Time, key string) []time.Time {
	all := p.last[key]
	for len(all) > 0 && now.Sub(all[0]) >= paceWindow {
		all = all[1:]
	}
	return all
}

func (p *pace) forget(now time.Time) {
	if len(p.last) < maxPaced {
		return
	}
	for key := range p.last {
		if len(p.recent(now, key)) == 0 {
			delete(p.last, key)
		}
	}
}
