package transport

import (
	"net"
	"net/netip"
	"sync"

	"soniq/internal/protocol/sip/sipmsg"
)

// Addresses that the server advertises in Via and Contact; tags and Call-IDs.

// advertisedAddrs holds the addresses that the server advertises: the public address, or one where the peer can reach
// it.
type advertisedAddrs struct {
	public               [2]netip.Addr // IPv4 and IPv6, if configured
	plainAddrs, tlsAddrs []netip.AddrPort
	publicIPText         string

	mu    sync.RWMutex // guards the fields below
	names map[advertisedKey]string
}

// advertisedKey is a peer, and whether TLS is used.
type advertisedKey struct {
	peer      netip.Addr
	encrypted bool
}

// maxAdvertisedEntries bounds the cache per peer.
const maxAdvertisedEntries = 4096

func (h *advertisedAddrs) init(s *Layer) {
	for _, k := range s.sockets {
		h.plainAddrs = append(h.plainAddrs, k.addr)
	}
	for _, l := range s.listeners {
		if l.secure != nil {
			h.tlsAddrs = append(h.tlsAddrs, l.addr)
		}
	}
	h.setPublic(s.config.PublicIP)
	h.setPublic(s.config.PublicIP6)
	h.names = make(map[advertisedKey]string)
	h.publicIPText = h.advertisedFor(netip.AddrFrom4([4]byte{192, 0, 2, 1}), h.plainAddrs).Addr().String()
}

func (h *advertisedAddrs) setPublic(a netip.Addr) {
	if a = a.Unmap(); a.IsValid() {
		h.public[familyIndex(a)] = a
	}
}

func familyIndex(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// hostPort returns our host:port for a peer.
func (h *advertisedAddrs) hostPort(peer netip.Addr, secure bool) string {
	key := advertisedKey{peer, secure}
	h.mu.RLock()
	name, ok := h.names[key]
	h.mu.RUnlock()
	if ok {
		return name
	}
	at := h.plainAddrs
	if secure && len(h.tlsAddrs) > 0 {
		at = h.tlsAddrs
	}
	name = h.advertisedFor(peer, at).String()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.names) >= maxAdvertisedEntries {
		clear(h.names)
	}
	h.names[key] = name
	return name
}

// advertisedFor returns the address that is advertised to a peer. A peer on this machine gets the bound address or
// loopback, which it reaches for certain.
func (h *advertisedAddrs) advertisedFor(peer netip.Addr, at []netip.AddrPort) netip.AddrPort {
	place := at[0]
	for _, p := range at {
		if canReach(p.Addr(), peer) {
			place = p
			break
		}
	}
	return netip.AddrPortFrom(h.hostFor(peer, place.Addr()), place.Port())
}

func (h *advertisedAddrs) hostFor(peer, bound netip.Addr) netip.Addr {
	public := h.public[familyIndex(peer)]
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
	return localAddrTo(peer)
}

// localAddrTo returns our source address of packets to a peer.
func localAddrTo(peer netip.Addr) netip.Addr {
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

// AdvertisedHostPort returns our host:port for a peer.
func (s *Layer) AdvertisedHostPort(peer netip.Addr) string {
	return s.advertised.hostPort(peer, false)
}

// SentBy returns our host:port on a flow.
func (s *Layer) SentBy(f Flow) string {
	return s.advertised.hostPort(f.Addr.Addr(), f.Transport() == sipmsg.TLS)
}

// PublicHost returns our address without a port.
func (s *Layer) PublicHost() string { return s.advertised.publicIPText }

// ContactValue returns our Contact value on a flow, with the user part of uri. It is a sips URI if uri is one and the
// flow is encrypted (RFC 3261 §8.1.1.8).
func (s *Layer) ContactValue(uri string, f Flow) string {
	u, err := sipmsg.ParseURI(uri)
	t := f.Transport()
	sips := err == nil && u.Scheme == "sips" && t.IsEncrypted()
	b := []byte("<sip:")
	if sips {
		b = []byte("<sips:")
	}
	if err == nil && u.User != "" && u.IsSIP() {
		b = append(sipmsg.AppendUser(b, u.User), '@')
	}
	b = append(b, s.SentBy(f)...)
	if t.IsConnection() && !(sips && t == sipmsg.TLS) {
		b = append(append(b, ";transport="...), t...)
	}
	return string(append(b, '>'))
}
