package sip

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
)

// hostNames is how we call ourselves: the public address, or one the peer can
// reach us at.
type hostNames struct {
	public   string // host:port, "" when every peer may need another
	loopback string // host:port
	guess    string
	ip       string
}

func (h *hostNames) init(public netip.Addr, bound netip.AddrPort) {
	name := func(a netip.Addr) string { return netip.AddrPortFrom(a, bound.Port()).String() }
	loop := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	h.loopback = name(loop)
	switch {
	case public.IsValid():
		h.public, h.ip = name(public), public.String()
	case !bound.Addr().IsUnspecified():
		h.public, h.ip = name(bound.Addr()), bound.Addr().String()
	default:
		a := interfaceAddr(loop)
		h.guess, h.ip = name(a), a.String()
	}
	if !bound.Addr().IsUnspecified() {
		h.loopback = h.public
	}
}

// interfaceAddr is the first address of ours that is not loopback.
func interfaceAddr(otherwise netip.Addr) netip.Addr {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			return p.Addr()
		}
	}
	return otherwise
}

// advertised is our host:port for a peer. One on this machine is given
// loopback, which it reaches for certain.
func (s *Server) advertised(peer netip.Addr) string {
	switch {
	case peer.IsLoopback():
		return s.host.loopback
	case s.host.public != "":
		return s.host.public
	}
	return s.host.guess
}

// public is our address without a port.
func (s *Server) public() string { return s.host.ip }

// contact is our Contact value on a flow, with the user part of uri.
func (s *Server) contact(uri string, f flow) string {
	b := []byte("<sip:")
	if u, err := ParseURI(uri); err == nil && u.User != "" && u.sip() {
		b = append(appendUser(b, u.User), '@')
	}
	b = append(b, s.advertised(f.addr.Addr())...)
	if f.reliable() {
		b = append(b, ";transport=tcp"...)
	}
	return string(append(b, '>'))
}

// newTag is a fresh From or To tag.
func newTag() string { return string(appendHex(nil, rand.Uint64())) }

// newCallID is a fresh Call-ID.
func newCallID() string {
	return string(appendHex(appendHex(nil, rand.Uint64()), rand.Uint64()))
}

// isTCP reads a transport URI parameter.
func isTCP(transport string) bool { return strings.EqualFold(transport, "tcp") }
