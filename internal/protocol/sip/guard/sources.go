// Package guard limits, trusts and bans source addresses.
package guard

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// Limits and trust per source address.

// Guard counts per source: requests of untrusted sources, wrong passwords, and requests that look for
// extensions. The memory of the counts is fixed: two sources that share a slot overwrite each other's counts. Trust is
// kept apart from them, because anybody can send what is counted.
type Guard struct {
	limits Limits
	seed   maphash.Seed
	slots  [sourceSlots]sourceState
	trust  trustTable
	bans   banTable
}

// Limits bounds what one source may do. All are required.
type Limits struct {
	PerSecond    int           // requests outside dialogs of an untrusted source
	FailedLogins int           // wrong passwords per minute before a ban
	Probes       int           // fruitless requests per minute before a ban
	BanFor       time.Duration // duration of the first ban; each further one is twice as long
	MaxBan       time.Duration // longest ban
	TrustFor     time.Duration // how long a source stays trusted after it authenticated
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
	exempt        RateLimiter   // requests let in despite a ban or the limit: emergency calls
	connects      RateLimiter   // connections accepted from a banned source
}

const (
	// inDialogFactor is the ratio of the limits for requests inside and outside dialogs of untrusted sources.
	inDialogFactor = 5
	// exemptPerSecond is the number of emergency calls per second that one source may start despite a ban or its limit.
	exemptPerSecond = 20
	// connectsPerSecond is the number of connections per second that are accepted from a banned source.
	connectsPerSecond = 10
	// probeGrace delays the ban of a source. After a power failure all phones of an office send requests at once; one
	// of them has logged in by then.
	probeGrace = 2 * time.Second
)

// New returns a guard without bans.
func New(l Limits) *Guard {
	g := &Guard{limits: l, seed: maphash.MakeSeed()}
	g.bans.init(l)
	g.trust.init()
	return g
}

// Ban bans a source and returns when the ban ends. With grow it takes twice as long as the last one.
func (g *Guard) Ban(a netip.Addr, why string, grow bool, now time.Duration) time.Duration {
	return g.bans.add(Network(a), why, grow, now).until
}

// Unban ends a ban and deletes its history. It returns false if there was none.
func (g *Guard) Unban(a netip.Addr) bool { return g.bans.remove(Network(a)) }

// Bans returns the bans at a time after start, the one that ends first at the front.
func (g *Guard) Bans(now time.Duration, start time.Time) []Ban {
	return g.bans.list(now, start)
}

// BanCount returns the number of sources that are banned or were recently.
func (g *Guard) BanCount() int64 { return g.bans.active.Load() }

// lockSlot locks the source's slot and returns it.
func (g *Guard) lockSlot(a netip.Addr, now time.Duration) *sourceState {
	w := &g.slots[maphash.Comparable(g.seed, a)%sourceSlots]
	w.mu.Lock()
	if w.source != a {
		w.source = a
		w.outsideCount, w.inDialogCount, w.failureCount, w.probeCount = 0, 0, 0, 0
		w.window, w.failureWindow, w.probeWindow = now, now, now
		w.exempt.reset(time.Second / exemptPerSecond)
		w.connects.reset(time.Second / connectsPerSecond)
	}
	return w
}

// AllowRequest reports whether a request outside dialogs may be processed. Bans are not considered: see Banned.
func (g *Guard) AllowRequest(a netip.Addr, now time.Duration) bool {
	return g.countRequest(Network(a), now, func(w *sourceState) bool {
		w.outsideCount++
		return w.outsideCount <= g.limits.PerSecond
	})
}

// AllowInDialog is AllowRequest for a request that claims to be inside a dialog. Whether it is, is not known before
// it is processed, and a ban must end no call.
func (g *Guard) AllowInDialog(a netip.Addr, now time.Duration) bool {
	return g.countRequest(Network(a), now, func(w *sourceState) bool {
		w.inDialogCount++
		return w.inDialogCount <= inDialogFactor*g.limits.PerSecond
	})
}

// countRequest counts a request. Only beyond the limit does it matter whether the source is trusted.
func (g *Guard) countRequest(a netip.Addr, now time.Duration, withinLimit func(*sourceState) bool) bool {
	w := g.lockSlot(a, now)
	w.rollWindow(now)
	ok := withinLimit(w)
	w.mu.Unlock()
	return ok || g.trust.isTrusted(a, now)
}

// AllowExempt reports whether an emergency call may be processed although its source is banned or beyond its limit.
func (g *Guard) AllowExempt(a netip.Addr, now time.Duration) bool {
	w := g.lockSlot(Network(a), now)
	defer w.mu.Unlock()
	return w.exempt.Allow(now)
}

func (w *sourceState) rollWindow(now time.Duration) {
	if now-w.window >= time.Second {
		w.window, w.outsideCount, w.inDialogCount = now, 0, 0
	}
}

// Trust marks a source that authenticated or is a trunk.
func (g *Guard) Trust(a netip.Addr, now time.Duration) {
	a = Network(a)
	g.trust.trust(a, now+g.limits.TrustFor, now)
	w := g.lockSlot(a, now)
	defer w.mu.Unlock()
	w.failureCount, w.probeCount = 0, 0
}

// Trusted reports whether a source authenticated recently or is a trunk.
func (g *Guard) Trusted(a netip.Addr, now time.Duration) bool {
	return g.trust.isTrusted(Network(a), now)
}

// SetPhone records that a user name is registered from an address until a time, or with until 0 that it no longer is. A
// ban of the source exempts such a phone.
func (g *Guard) SetPhone(from netip.AddrPort, user, account string, until, now time.Duration) {
	g.trust.setPhone(Network(from.Addr()), user, registeredPhone{until: until, flow: from, account: account}, now)
}

// IsPhone reports whether a user name is registered at a source.
func (g *Guard) IsPhone(a netip.Addr, user string, now time.Duration) bool {
	_, ok := g.trust.phone(Network(a), user, now)
	return ok
}

// IsPhoneFlow reports whether a user name is registered from exactly this address and port.
func (g *Guard) IsPhoneFlow(from netip.AddrPort, user string, now time.Duration) bool {
	p, ok := g.trust.phone(Network(from.Addr()), user, now)
	return ok && p.flow == from
}

// IsAccountFlow reports whether an account is registered from exactly this address and port.
func (g *Guard) IsAccountFlow(from netip.AddrPort, account string, now time.Duration) bool {
	return account != "" && g.trust.hasAccount(Network(from.Addr()), registeredPhone{flow: from, account: account}, now)
}

// CountFailedLogin counts a wrong password. It returns true if there were too many within a minute.
func (g *Guard) CountFailedLogin(a netip.Addr, now time.Duration) bool {
	a = Network(a)
	w := g.lockSlot(a, now)
	defer w.mu.Unlock()
	if now-w.failureWindow >= time.Minute {
		w.failureWindow, w.failureCount = now, 0
	}
	if w.failureCount++; w.failureCount < g.limits.FailedLogins {
		return false
	}
	w.failureCount = 0
	g.trust.distrust(a)
	return true
}

// CountProbe counts a fruitless request: without credentials, malformed, or for a target that does not exist. It
// returns true if an untrusted source sent too many within a minute.
func (g *Guard) CountProbe(a netip.Addr, now time.Duration) bool {
	a = Network(a)
	if g.trust.isTrusted(a, now) {
		return false
	}
	w := g.lockSlot(a, now)
	defer w.mu.Unlock()
	if w.probeCount == 0 || now-w.probeWindow >= time.Minute {
		w.probeWindow, w.probeCount = now, 0
	}
	if w.probeCount++; w.probeCount < g.limits.Probes || now-w.probeWindow < probeGrace {
		return false
	}
	w.probeCount = 0
	return true
}

// MayConnect reports whether a connection from a source may be accepted. A banned source may make few, for emergency
// calls; with phones registered at it, as many as another one.
func (g *Guard) MayConnect(a netip.Addr, now time.Duration) bool {
	a = Network(a)
	if !g.bans.isBanned(a, now) || g.trust.hasLivePhones(a, now) {
		return true
	}
	w := g.lockSlot(a, now)
	defer w.mu.Unlock()
	return w.connects.Allow(now)
}

// Banned reports whether a source is banned.
func (g *Guard) Banned(a netip.Addr, now time.Duration) bool {
	return g.bans.isBanned(Network(a), now)
}

// Network returns the unit that counts as one source: the address, or for IPv6 the /64 network, because an IPv6
// site has too many addresses to track.
func Network(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); a.Is6() && !a.IsLoopback() {
		p, _ := a.Prefix(64)
		return p.Addr()
	}
	return a
}
