package sip

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
)

// Addresses that the server advertises in Via and Contact; tags and Call-IDs.

// advertisedAddrs holds the addresses that the server advertises: the public address, or one where the peer can reach
// it.
type hostNames struct {
	public        [2]netip.Addr // IPv4 and IPv6, if configured
	plain, secure []netip.AddrPort
	ip            string

	mu    sync.RWMutex // guards the fields below
	names map[hostKey]string
}

// advertisedKey is a peer, and whether TLS is used.
type hostKey struct {
	peer   netip.Addr
	secure bool
}

// maxAdvertisedEntries bounds the cache per peer.
const maxHostNames = 4096

func (h *hostNames) init(s *Server) {
	for _, k := range s.sockets {
		h.plain = append(h.plain, k.addr)
	}
	for _, l := range s.listeners {
		if l.secure != nil {
			h.secure = append(h.secure, l.addr)
		}
	}
	h.know(s.config.PublicIP)
	h.know(s.config.PublicIP6)
	h.names = make(map[hostKey]string)
	h.ip = h.find(netip.AddrFrom4([4]byte{192, 0, 2, 1}), h.plain).Addr().String()
}

func (h *hostNames) know(a netip.Addr) {
	if a = a.Unmap(); a.IsValid() {
		h.public[side6(a)] = a
	}
}

func side6(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// hostPort returns our host:port for a peer.
func (h *hostNames) name(peer netip.Addr, secure bool) string {
	key := hostKey{peer, secure}
	h.mu.RLock()
	name, ok := h.names[key]
	h.mu.RUnlock()
	if ok {
		return name
	}
	at := h.plain
	if secure && len(h.secure) > 0 {
		at = h.secure
	}
	name = h.find(peer, at).String()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.names) >= maxHostNames {
		clear(h.names)
	}
	h.names[key] = name
	return name
}

// advertisedFor returns the address that is advertised to a peer. A peer on this machine gets the bound address or
// loopback, which it reaches for certain.
func (h *hostNames) find(peer netip.Addr, at []netip.AddrPort) netip.AddrPort {
	place := at[0]
	for _, p := range at {
		if reaches(p.Addr(), peer) {
			place = p
			break
		}
	}
	return netip.AddrPortFrom(h.addr(peer, place.Addr()), place.Port())
}

func (h *hostNames) addr(peer, bound netip.Addr) netip.Addr {
	public := h.public[side6(peer)]
	switch {
	case public.IsValid() && (!peer.IsLoopback() || !bound.IsUnspecified() && !bound.IsLoopback()):
		return public
	case !bound.IsUnspecified():
		return bound
	case peer.IsLoopback() && peer.Is4():
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case peer.IsLoopback():
		return netip.IPv6Loopback()
	}
	return localTo(peer)
}

// localAddrTo returns our source address of packets to a peer.
func localTo(peer netip.Addr) netip.Addr {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, 9)))
	if err != nil {
		return interfaceAddr(peer.Is6())
	}
	defer c.Close()
	return addrPort(c.LocalAddr()).Addr().WithZone("")
}

// interfaceAddr returns our first address that is not loopback.
func interfaceAddr(six bool) netip.Addr {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().Is6() == six && p.Addr().IsGlobalUnicast() {
			return p.Addr()
		}
	}
	if six {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// advertisedHostPort returns our host:port for a peer.
func (s *Server) advertised(peer netip.Addr) string { return s.host.name(peer, false) }

// sentBy returns our host:port on a flow.
func (s *Server) sentBy(f flow) string { return s.host.name(f.addr.Addr(), f.transport() == TLS) }

// publicHost returns our address without a port.
func (s *Server) public() string { return s.host.ip }

// contactValue returns our Contact value on a flow, with the user part of uri. It is a sips URI if uri is one and the
// flow is encrypted (RFC 3261 §8.1.1.8).
func (s *Server) contact(uri string, f flow) string {
	u, err := ParseURI(uri)
	t := f.transport()
	sips := err == nil && u.Scheme == "sips" && t.secure()
	b := []byte("<sip:")
	if sips {
		b = []byte("<sips:")
	}
	if err == nil && u.User != "" && u.sip() {
		b = append(appendUser(b, u.User), '@')
	}
	b = append(b, s.sentBy(f)...)
	if t.stream() && !(sips && t == TLS) {
		b = append(append(b, ";transport="...), t...)
	}
	return string(append(b, '>'))
}

// newTag returns a new From or To tag.
func newTag() string { return string(appendHex(nil, rand.Uint64())) }

// newCallID returns a new Call-ID.
func newCallID() string {
	return string(appendHex(appendHex(nil, rand.Uint64()), rand.Uint64()))
}
