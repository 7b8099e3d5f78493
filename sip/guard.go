package sip

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// guard keeps an eye on sources: how much strangers send, and who guesses
// passwords. Its memory does not grow: two sources that share a slot forget
// each other.
type guard struct {
	limits Limits
	seed   maphash.Seed
	slots  [guardSlots]watched
}

const guardSlots = 4096

type watched struct {
	mu       sync.Mutex // guards what follows
	source   netip.Addr
	window   time.Duration // start of the second being counted
	requests int
	failures int
	failed   time.Duration // start of the minute of failures
	banned   time.Duration // until when
	trusted  time.Duration // until when, after a login or as a trunk
}

// trustFor is how long a source stays known after it authenticated.
const trustFor = 10 * time.Minute

func (g *guard) init(l Limits) {
	g.limits = l
	g.seed = maphash.MakeSeed()
}

// slot locks the source's slot. A banned occupant is not displaced.
func (g *guard) slot(a netip.Addr, now time.Duration) *watched {
	a = network(a)
	w := &g.slots[maphash.Comparable(g.seed, a)%guardSlots]
	w.mu.Lock()
	if w.source != a && now >= w.banned {
		w.source = a
		w.requests, w.failures = 0, 0
		w.window, w.failed, w.banned, w.trusted = now, now, 0, 0
	}
	return w
}

// allow tells whether a request outside dialogs may be looked at.
func (g *guard) allow(a netip.Addr, now time.Duration) bool {
	w := g.slot(a, now)
	defer w.mu.Unlock()
	if w.source != network(a) || now < w.trusted {
		return true
	}
	if now < w.banned {
		return false
	}
	if now-w.window >= time.Second {
		w.window, w.requests = now, 0
	}
	w.requests++
	return w.requests <= g.limits.SourcePerSecond
}

// trust notes a source that authenticated or is a trunk.
func (g *guard) trust(a netip.Addr, now time.Duration) {
	w := g.slot(a, now)
	defer w.mu.Unlock()
	if w.source == network(a) {
		w.trusted, w.failures = now+trustFor, 0
	}
}

// failure counts a wrong password; too many within a minute ban the source.
func (g *guard) failure(a netip.Addr, now time.Duration) {
	w := g.slot(a, now)
	defer w.mu.Unlock()
	if w.source != network(a) {
		return
	}
	if now-w.failed >= time.Minute {
		w.failed, w.failures = now, 0
	}
	w.failures++
	if w.failures >= g.limits.FailedLogins {
		w.banned, w.trusted, w.failures = now+g.limits.BanFor, 0, 0
	}
}

// network is what counts as one source: an IPv6 site has more addresses than
// anybody could remember.
func network(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); a.Is6() && !a.IsLoopback() {
		p, _ := a.Prefix(64)
		return p.Addr()
	}
	return a
}

// trusted tells whether a source authenticated lately or is a trunk.
func (g *guard) trusted(a netip.Addr, now time.Duration) bool {
	w := g.slot(a, now)
	defer w.mu.Unlock()
	return w.source == network(a) && now < w.trusted
}

// mayConnect tells whether a source's connection may be taken.
func (g *guard) mayConnect(a netip.Addr, now time.Duration) bool {
	w := g.slot(a, now)
	defer w.mu.Unlock()
	return w.source != network(a) || now >= w.banned
}
