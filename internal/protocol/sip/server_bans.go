package sip

import (
	"context"
	"net/netip"
	"slices"

	"soniq/internal/protocol/sip/guard"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Bans of the server: the reasons to ban a source, and the notification of its ban.

// Bans returns the sources banned now, the ban that ends first at the front.
func (s *Server) Bans() []guard.Ban { return s.guard.Bans(s.clock(), s.startedAt) }

// Unban ends a ban and deletes its history. It returns false if there was none.
func (s *Server) Unban(source netip.Addr) bool { return s.guard.Unban(source) }

// Reasons of a ban.
const (
	banReasonGuessing = "too many wrong passwords"
	banReasonProbing  = "too many requests that failed"
	banReasonScanner  = "User-Agent of a scanner"
)

// bannedWarning tells an edge why a client behind it is refused.
const bannedWarning = "Warning: 399 soniq \"this source is banned for a while\"\r\n"

// isEdge reports whether an address belongs to an edge.
func (s *Server) isEdge(a netip.Addr) bool {
	a = a.Unmap()
	return slices.ContainsFunc(s.config.Edges, func(p netip.Prefix) bool { return p.Contains(a) })
}

// clientOfEdge returns the sender of a request that arrived through an edge, or the zero AddrPort if it has none.
func (s *Server) clientOfEdge(raw string, f transport.Flow) netip.AddrPort {
	if len(s.config.Edges) == 0 || !s.isEdge(f.Addr.Addr()) {
		return netip.AddrPort{}
	}
	return sipmsg.PeekSecondSource(raw)
}

// countFutileRequest counts a fruitless request of a source and may ban it. It never waits.
func (s *Server) countFutileRequest(a netip.Addr, t sipmsg.Transport) {
	if s.guard.CountProbe(a, s.clock()) {
		s.spawn(func() { s.banSource(a, banReasonProbing, t.IsConnection()) })
	}
}

// banScanner bans a source that was recognised as a scanner.
func (s *Server) banScanner(f transport.Flow) {
	a := f.Source().Addr()
	if now := s.clock(); !s.guard.Trusted(a, now) && !s.guard.Banned(a, now) {
		s.spawn(func() { s.banSource(a, banReasonScanner, f.Reliable()) })
	}
}

// banSource bans a source, unless it is banned already, is an edge or is known to be a carrier's. The duration grows only if the address is
// proved to be the sender's. Datagrams can be forged to get another source banned, so such a ban stays short.
func (s *Server) banSource(a netip.Addr, why string, proved bool) {
	if s.guard.Banned(a, s.clock()) || s.isEdge(a) {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	defer cancel()
	if s.config.Accounts.Exempt(ctx, a) {
		s.guard.Trust(a, s.clock())
		return
	}
	source := guard.Network(a)
	until := s.startedAt.Add(s.guard.Ban(source, why, proved, s.clock()))
	s.layer.CloseUntrusted(source)
	s.config.Logger.Warn("sip: banned", "source", source, "until", until, "why", why)
	if s.config.OnBan != nil {
		s.config.OnBan(source, until, why)
	}
}
