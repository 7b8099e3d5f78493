package media

import (
	"net/netip"
	"time"
)

// latch decides whose packets a stream accepts. Behind NAT the signalled address
// is not where packets come from, so the first source is learned (symmetric RTP,
// RFC 4961); but who may be learned, and when, is limited, or anyone who sprays
// packets over our ports hears the call ("RTP bleed"):
//
//   - A source is exact (the signalled address and port), known (another port of
//     the signalled host, or of the host the signalling came from), or a stranger.
//   - A window opens with each negotiation (SetRemote, Bridge). While it is open
//     a better source replaces a worse one, and an equal one replaces a source
//     that has not been heard since the window opened.
//   - While the window is shut, an exact or known source may still replace a
//     stranger or nothing, and an exact one a known one. A stranger is never accepted.
//   - Strict legs accept no strangers at all.
//
// Everything else is ignored: not relayed, not recorded, not counted as received.
type latch struct {
	signalled netip.AddrPort
	via       netip.Addr

	opened, until int64 // the window, on the engine's clock
	source        netip.AddrPort
	heard         int64 // when source was heard last
	rank          rank
	strict        bool
}

type rank uint8

const (
	nobody rank = iota
	stranger
	known
	exact
)

// negotiate sets the signalled address and opens the window. A source learned
// for another address is forgotten.
func (l *latch) negotiate(r Remote, now int64, window time.Duration) {
	if r.Addr != l.signalled && !r.Addr.Addr().IsUnspecified() {
		l.source, l.rank = netip.AddrPort{}, nobody
	}
	if !r.Addr.Addr().IsUnspecified() {
		l.signalled = r.Addr
	}
	l.via, l.strict = r.Via, r.Strict
	l.open(now, window)
}

func (l *latch) open(now int64, window time.Duration) {
	l.opened, l.until = now, now+int64(window)
}

// accepts reports whether a packet from this source is the leg's. moved says
// that the source is a new one.
func (l *latch) accepts(from netip.AddrPort, now int64) (ok, moved bool) {
	if !l.admits(from, now) {
		return false, false
	}
	return true, l.take(from, now)
}

// admits reports whether a packet from this source may be the leg's; where the
// leg is encrypted it must be proved next.
func (l *latch) admits(from netip.AddrPort, now int64) bool {
	return from == l.source || l.replaces(l.rankOf(from), now)
}

// take follows an admitted source. It reports whether the source is a new one.
func (l *latch) take(from netip.AddrPort, now int64) (moved bool) {
	l.heard = now
	if from == l.source {
		return false
	}
	l.source, l.rank = from, l.rankOf(from)
	return true
}

func (l *latch) replaces(r rank, now int64) bool {
	switch {
	case r == nobody || r < l.rank:
		return false
	case now >= l.until:
		return r > l.rank && r >= known
	case r == l.rank:
		return l.heard < l.opened
	}
	return true
}

func (l *latch) rankOf(from netip.AddrPort) rank {
	switch {
	case from == l.signalled:
		return exact
	case from.Addr() == l.signalled.Addr(), from.Addr() == l.via:
		return known
	case l.strict:
		return nobody
	}
	return stranger
}
