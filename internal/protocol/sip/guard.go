package sip

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// guard keeps an eye on sources: how much strangers send, who guesses
// passwords and who looks for extensions. Its memory does not grow: two
// sources that share a slot forget each other.
type guard struct {
	limits Limits
	seed   maphash.Seed
	slots  [guardSlots]watched
	bans   bans
}

const guardSlots = 4096

type watched struct {
	mu       sync.Mutex // guards what follows
	source   netip.Addr
	window   time.Duration // start of the second being counted
	requests int           // outside dialogs
	inside   int           // that claim to be inside one
	failed   time.Duration // start of the minute of failures
	failures int           // wrong passwords
	probed   time.Duration // start of the minute of probes
	probes   int           // requests that came to nothing
	trusted  time.Duration // until when, after a login or as a trunk
}

const (
	// trustFor is how long a source stays known after it authenticated: longer
	// than a registration lasts.
	trustFor = maxExpires*time.Second + 10*time.Minute
	// insideShare is how many times more requests inside dialogs than outside a
	// stranger may send.
	insideShare = 5
	// probeGrace: when the power of an office comes back all its phones ask at
	// once, and one of them will have logged in before this.
	probeGrace = 2 * time.Second
)

func (g *guard) init(l Limits) {
	g.limits = l
	g.seed = maphash.MakeSeed()
	g.bans.init(l)
}

// slot locks the source's slot.
func (g *guard) slot(a netip.Addr, now time.Duration) *watched {
	w := &g.slots[maphash.Comparable(g.seed, a)%guardSlots]
	w.mu.Lock()
	if w.source != a {
		w.source = a
		w.requests, w.inside, w.failures, w.probes = 0, 0, 0, 0
		w.window, w.failed, w.probed, w.trusted = now, now, now, 0
	}
	return w
}

// allow tells whether a request outside dialogs may be looked at.
func (g *guard) allow(a netip.Addr, now time.Duration) bool {
	a = network(a)
	if g.bans.has(a, now) {
		return false
	}
	w := g.slot(a, now)
	defer w.mu.Unlock()
	w.tick(now)
	w.requests++
	return now < w.trusted || w.requests <= g.limits.SourcePerSecond
}

// allowInside tells the same of a request that claims to be inside a dialog:
// that is not known before it is looked at, and a ban ends no call.
func (g *guard) allowInside(a netip.Addr, now time.Duration) bool {
	w := g.slot(network(a), now)
	defer w.mu.Unlock()
	w.tick(now)
	w.inside++
	return now < w.trusted || w.inside <= insideShare*g.limits.SourcePerSecond
}

func (w *watched) tick(now time.Duration) {
	if now-w.window >= time.Second {
		w.window, w.requests, w.inside = now, 0, 0
	}
}

// trust notes a source that authenticated or is a trunk.
func (g *guard) trust(a netip.Addr, now time.Duration) {
	w := g.slot(network(a), now)
	defer w.mu.Unlock()
	w.trusted, w.failures, w.probes = now+trustFor, 0, 0
}

// trusted tells whether a source authenticated lately or is a trunk.
func (g *guard) trusted(a netip.Addr, now time.Duration) bool {
	w := g.slot(network(a), now)
	defer w.mu.Unlock()
	return now < w.trusted
}

// failure counts a wrong password; true when there were too many within a
// minute.
func (g *guard) failure(a netip.Addr, now time.Duration) bool {
	w := g.slot(network(a), now)
	defer w.mu.Unlock()
	if now-w.failed >= time.Minute {
		w.failed, w.failures = now, 0
	}
	if w.failures++; w.failures < g.limits.FailedLogins {
		return false
	}
	w.failures, w.trusted = 0, 0
	return true
}

// probe counts a request that came to nothing: without a login, malformed, or
// for what is not there. It is true when a stranger sent too many within a
// minute.
func (g *guard) probe(a netip.Addr, now time.Duration) bool {
	w := g.slot(network(a), now)
	defer w.mu.Unlock()
	if now < w.trusted {
		return false
	}
	if w.probes == 0 || now-w.probed >= time.Minute {
		w.probed, w.probes = now, 0
	}
	if w.probes++; w.probes < g.limits.Probes || now-w.probed < probeGrace {
		return false
	}
	w.probes = 0
	return true
}

// mayConnect tells whether a source's connection may be taken.
func (g *guard) mayConnect(a netip.Addr, now time.Duration) bool { return !g.banned(a, now) }

func (g *guard) banned(a netip.Addr, now time.Duration) bool { return g.bans.has(network(a), now) }

// network is what counts as one source: an IPv6 site has more addresses than
// anybody could remember.
func network(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); a.Is6() && !a.IsLoopback() {
		p, _ := a.Prefix(64)
		return p.Addr()
	}
	return a
}
