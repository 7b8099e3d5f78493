package sip

import (
	"net/netip"
	"sync"
	"time"
)

// Next hops that failed recently.

// failedTargets records next hops that failed recently, so that others are tried first (RFC 3263 §4.3).
type deadTargets struct {
	mu    sync.Mutex // guards the fields below
	until map[deadKey]time.Duration
}

type deadKey struct {
	kind Transport
	addr netip.AddrPort
}

const (
	deadFor = 30 * time.Second
	maxDead = 4096
)

// markFailed records that a target failed.
func (d *deadTargets) note(t Transport, a netip.AddrPort, now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until == nil || len(d.until) >= maxDead {
		d.until = make(map[deadKey]time.Duration)
	}
	d.until[deadKey{t, a}] = now + deadFor
}

// recentlyFailed reports whether a target failed within failedTargetTTL.
func (d *deadTargets) has(t Transport, a netip.AddrPort, now time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	until, ok := d.until[deadKey{t, a}]
	if ok && now >= until {
		delete(d.until, deadKey{t, a})
		return false
	}
	return ok
}
