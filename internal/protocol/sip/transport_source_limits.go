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
type sourceGuard struct {
	limits Limits
	seed   maphash.Seed
	slots  [sourceSlots]sourceState
	bans   banTable
}

const sourceSlots = 4096

type sourceState struct {
	mu            sync.Mutex // guards the fields below
	source        netip.Addr
	window        time.Duration // start of the current second
	outsideCount  int           // outside dialogs
	inDialogCount int           // claiming to be inside a dialog
	failureWindow time.Duration // start of the current minute of failures
	failureCount  int           // wrong passwords
	probeWindow   time.Duration // start of the current minute of probes
	probeCount    int           // fruitless requests
	trustedUntil  time.Duration // trusted until then, after a login or as a trunk
}

const (
	// trustDuration is how long a source stays trusted after it authenticated: longer than a registration lasts.
	trustDuration = maxExpires*time.Second + 10*time.Minute
	// inDialogFactor is the ratio of the limits for requests inside and outside dialogs of untrusted sources.
	inDialogFactor = 5
	// probeGrace delays the ban of a source. After a power failure all phones of an office send requests at once; one
	// of them has logged in by then.
	probeGrace = 2 * time.Second
)

func (g *sourceGuard) init(l Limits) {
	g.limits = l
	g.seed = maphash.MakeSeed()
	g.bans.init(l)
}

// lockSlot locks the source's slot and returns it.
func (g *sourceGuard) lockSlot(a netip.Addr, now time.Duration) *sourceState {
	w := &g.slots[maphash.Comparable(g.seed, a)%sourceSlots]
	w.mu.Lock()
	if w.source != a {
		w.source = a
		w.outsideCount, w.inDialogCount, w.failureCount, w.probeCount = 0, 0, 0, 0
		w.window, w.failureWindow, w.probeWindow, w.trustedUntil = now, now, now, 0
	}
	return w
}

// allowRequest reports whether a request outside dialogs may be processed.
func (g *sourceGuard) allowRequest(a netip.Addr, now time.Duration) bool {
	a = sourceNetwork(a)
	if g.bans.isBanned(a, now) {
		return false
	}
	w := g.lockSlot(a, now)
	defer w.mu.Unlock()
	w.rollWindow(now)
	w.outsideCount++
	return now < w.trustedUntil || w.outsideCount <= g.limits.SourcePerSecond
}

// allowInDialog is allowRequest for a request that claims to be inside a dialog. Whether it is, is not known before
// it is processed, and a ban must end no call.
func (g *sourceGuard) allowInDialog(a netip.Addr, now time.Duration) bool {
	w := g.lockSlot(sourceNetwork(a), now)
	defer w.mu.Unlock()
	w.rollWindow(now)
	w.inDialogCount++
	return now < w.trustedUntil || w.inDialogCount <= inDialogFactor*g.limits.SourcePerSecond
}

func (w *sourceState) rollWindow(now time.Duration) {
	if now-w.window >= time.Second {
		w.window, w.outsideCount, w.inDialogCount = now, 0, 0
	}
}

// trust marks a source that authenticated or is a trunk.
func (g *sourceGuard) trust(a netip.Addr, now time.Duration) {
	w := g.lockSlot(sourceNetwork(a), now)
	defer w.mu.Unlock()
	w.trustedUntil, w.failureCount, w.probeCount = now+trustDuration, 0, 0
}

// trusted reports whether a source authenticated recently or is a trunk.
func (g *sourceGuard) trusted(a netip.Addr, now time.Duration) bool {
	w := g.lockSlot(sourceNetwork(a), now)
	defer w.mu.Unlock()
	return now < w.trustedUntil
}

// countFailedLogin counts a wrong password. It returns true if there were too many within a minute.
func (g *sourceGuard) countFailedLogin(a netip.Addr, now time.Duration) bool {
	w := g.lockSlot(sourceNetwork(a), now)
	defer w.mu.Unlock()
	if now-w.failureWindow >= time.Minute {
		w.failureWindow, w.failureCount = now, 0
	}
	if w.failureCount++; w.failureCount < g.limits.FailedLogins {
		return false
	}
	w.failureCount, w.trustedUntil = 0, 0
	return true
}

// countProbe counts a fruitless request: without credentials, malformed, or for a target that does not exist. It
// returns true if an untrusted source sent too many within a minute.
func (g *sourceGuard) countProbe(a netip.Addr, now time.Duration) bool {
	w := g.lockSlot(sourceNetwork(a), now)
	defer w.mu.Unlock()
	if now < w.trustedUntil {
		return false
	}
	if w.probeCount == 0 || now-w.probeWindow >= time.Minute {
		w.probeWindow, w.probeCount = now, 0
	}
	if w.probeCount++; w.probeCount < g.limits.Probes || now-w.probeWindow < probeGrace {
		return false
	}
	w.probeCount = 0
	return true
}

// mayConnect reports whether a connection from a source may be accepted.
func (g *sourceGuard) mayConnect(a netip.Addr, now time.Duration) bool { return !g.banned(a, now) }

func (g *sourceGuard) banned(a netip.Addr, now time.Duration) bool {
	return g.bans.isBanned(sourceNetwork(a), now)
}

// sourceNetwork returns the unit that counts as one source: the address, or for IPv6 the /64 network, because an IPv6
// site has too many addresses to track.
func sourceNetwork(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); a.Is6() && !a.IsLoopback() {
		p, _ := a.Prefix(64)
		return p.Addr()
	}
	return a
}
