package media

import (
	"net/netip"
	"time"

	"soniq/internal/protocol/media/sdp"
)

// latch decides from which source address a stream accepts packets. Behind NAT the signalled address differs from the
// packets' source. The first source is therefore learned (symmetric RTP, RFC 4961). Learning is limited by source and
// by time; otherwise an attacker that sprays packets over our ports could hear the call ("RTP bleed"):
//
//   - A source is exact (the signalled address and port), known (another port of the signalled host, or of the host the signalling came
//     from), or foreign (any other host).
//   - A window opens with each negotiation (SetRemote, Bridge). While it is open a better source replaces a worse one. An equal one
//     replaces a source that has sent nothing since the window opened.
//   - While the window is closed, an exact or known source may still replace a foreign source or none, and an exact one a known one. A
//     foreign source is never accepted.
//   - Strict legs never accept foreign sources.
//
// Packets of other sources are ignored: not relayed, not recorded, not counted as received.
type latch struct {
	signalled netip.AddrPort
	via       netip.Addr

	windowStart, windowEnd int64 // the window, on the engine's clock
	source                 netip.AddrPort
	lastHeard              int64 // time of the last packet of source
	rank                   sourceRank
	strict                 bool
}

type sourceRank uint8

const (
	rankNone sourceRank = iota
	rankForeign
	rankKnownHost
	rankExact
)

// negotiate sets the signalled address and opens the window. It forgets a source that was learned for another
// address.
func (l *latch) negotiate(r Remote, now int64, window time.Duration) {
	if r.Addr != l.signalled && !r.Addr.Addr().IsUnspecified() {
		l.source, l.rank = netip.AddrPort{}, rankNone
	}
	if !r.Addr.Addr().IsUnspecified() {
		l.signalled = r.Addr
	}
	l.via, l.strict = r.Via, r.Strict
	l.openWindow(now, window)
}

func (l *latch) openWindow(now int64, window time.Duration) {
	l.windowStart, l.windowEnd = now, now+int64(window)
}

// admits reports whether a packet from this source may belong to the leg. On an encrypted leg the packet must be
// authenticated next.
func (l *latch) admits(from netip.AddrPort, now int64) bool {
	return from == l.source || l.replaces(l.rankOf(from), now)
}

// follow makes an admitted source the current one. It reports whether the source is new.
func (l *latch) follow(from netip.AddrPort, now int64) (moved bool) {
	l.lastHeard = now
	if from == l.source {
		return false
	}
	l.source, l.rank = from, l.rankOf(from)
	return true
}

func (l *latch) replaces(r sourceRank, now int64) bool {
	switch {
	case r == rankNone || r < l.rank:
		return false
	case now >= l.windowEnd:
		return r > l.rank && r >= rankKnownHost
	case r == l.rank:
		return l.lastHeard < l.windowStart
	}
	return true
}

func (l *latch) rankOf(from netip.AddrPort) sourceRank {
	switch {
	case from == l.signalled:
		return rankExact
	case from.Addr() == l.signalled.Addr(), from.Addr() == l.via:
		return rankKnownHost
	case l.strict:
		return rankNone
	}
	return rankForeign
}

// withoutRefused returns a remote without the addresses that Config.Targets refuses. Nothing is sent until a source is
// learned then.
func (s *Stream) withoutRefused(r Remote) Remote {
	if s.refuses(r.Addr.Addr(), r.Via) {
		r.Addr = netip.AddrPortFrom(netip.IPv4Unspecified(), r.Addr.Port())
	}
	if s.refuses(r.RTCP.Addr(), r.Via) {
		r.RTCP = netip.AddrPort{}
	}
	return r
}

// withoutRefusedCandidates returns an agreement without the ICE candidates that Config.Targets refuses.
func (s *Stream) withoutRefusedCandidates(a *sdp.Agreement, via netip.Addr) *sdp.Agreement {
	if a.ICE == nil || s.engine.cfg.Targets == nil {
		return a
	}
	some, parameters := *a, *a.ICE
	parameters.Candidates = nil
	for _, c := range a.ICE.Candidates {
		if !s.refuses(c.Addr.Addr(), via) {
			parameters.Candidates = append(parameters.Candidates, c)
		}
	}
	some.ICE = &parameters
	return &some
}

// refuses reports whether Config.Targets refuses an address. An unspecified one is never sent to.
func (s *Stream) refuses(media, via netip.Addr) bool {
	check := s.engine.cfg.Targets
	return check != nil && media.IsValid() && !media.IsUnspecified() && check.CheckMedia(media.Unmap(), via.Unmap()) != nil
}
