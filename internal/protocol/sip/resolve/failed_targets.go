package resolve

import (
	"net/netip"
	"sync"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
)

// Next hops that failed recently.

// failedTargets records next hops that failed recently, so that others are tried first (RFC 3263 §4.3).
type failedTargets struct {
	mu    sync.Mutex // guards the fields below
	until map[failedTargetKey]time.Duration
}

type failedTargetKey struct {
	transport sipmsg.Transport
	addr      netip.AddrPort
}

const (
	failedTargetTTL  = 30 * time.Second
	maxFailedTargets = 4096
)

// markFailed records that a target failed.
func (d *failedTargets) markFailed(t sipmsg.Transport, a netip.AddrPort, now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until == nil || len(d.until) >= maxFailedTargets {
		d.until = make(map[failedTargetKey]time.Duration)
	}
	d.until[failedTargetKey{t, a}] = now + failedTargetTTL
}

// recentlyFailed reports whether a target failed within failedTargetTTL.
func (d *failedTargets) recentlyFailed(t sipmsg.Transport, a netip.AddrPort, now time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	until, ok := d.until[failedTargetKey{t, a}]
	if ok && now >= until {
		delete(d.until, failedTargetKey{t, a})
		return false
	}
	return ok
}
