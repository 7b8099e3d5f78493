package sip

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// Limits and trust per source address.

// sourceGuard counts per source: requests of untrusted sources, wrong passwords, and requests that look for
// extensions. Its memory is fixed: two sources that share a slot overwrite each other's counts.
type guard struct {
	limits Limits
	seed   maphash.Seed
	slots  [guardSlots]watched
	bans   bans
}

const guardSlots = 4096

type watched struct {
	mu       sync.Mutex // guards the fields below
	source   netip.Addr
	window   time.Duration // start of the current second
	requests int           // outside dialogs
	inside   int           // claiming to be inside a dialog
	failed   time.Duration // start of the current minute of failures
	failures int           // wrong passwords
	probed   time.Duration // start of the current minute of probes
	probes   int           // fruitless requests
	trusted  time.Duration // trusted until then, after a login or as a trunk
}

const (
	// trustDuration is how long a source stays trusted after it authenticated: longer than a registration lasts.
	trustFor = maxExpires*time.Second + 10*time.Minute
	// inDialogFactor is the ratio of the limits for requests inside and outside dialogs of untrusted sources.
	insideShare = 5
	// probeGrace delays the ban of a source. After a power failure all phones of an office send requests at once; one
	// of them has logged in by then.
	probeGrace = 2 * time.Second
)

func (g *guard) init(l Limits) {
	g.limits = l
	g.seed = maphash.MakeSeed()
	g.bans.init(l)
}

// lockSlot locks the source's slot and returns it.
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

// allowRequest reports whether a request outside dialogs may be processed.
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

// allowInDialog is allowRequest for a request that claims to be inside a dialog. Whether it is, is not known before
// it is processed, and a ban must end no call.
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

// trust marks a source that authenticated or is a trunk.
func (g *guard) trust(a netip.Addr, now time.Duration) {
	w := g.slot(network(a), now)
	defer w.mu.Unlock()
	w.trusted, w.failures, w.probes = now+trustFor, 0, 0
}

// trusted reports whether a source authenticated recently or is a trunk.
func (g *guard) trusted(a netip.Addr, now time.Duration) bool {
	w := g.slot(network(a), now)
	defer w.mu.Unlock()
	return now < w.trusted
}

// countFailedLogin counts a wrong password. It returns true if there were too many within a minute.
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

// countProbe counts a fruitless request: without credentials, malformed, or for a target that does not exist. It
// returns true if an untrusted source sent too many within a minute.
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

// mayConnect reports whether a connection from a source may be accepted.
func (g *guard) mayConnect(a netip.Addr, now time.Duration) bool { return !g.banned(a, now) }

func (g *guard) banned(a netip.Addr, now time.Duration) bool { return g.bans.has(network(a), now) }

// sourceNetwork returns the unit that counts as one source: the address, or for IPv6 the /64 network, because an IPv6
// site has too many addresses to track.
func network(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); a.Is6() && !a.IsLoopback() {
		p, _ := a.Prefix(64)
		return p.Addr()
	}
	return a
}
