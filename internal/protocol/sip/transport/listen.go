package transport

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Opening the listening sockets for UDP, TCP and TLS.

// parseListenAddrs parses a list such as "0.0.0.0:5060,[::]:5060". An entry without a host means every address of
// both families.
func parseListenAddrs(list string) (all []netip.AddrPort, err error) {
	for _, text := range strings.Split(list, ",") {
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, ":") {
			text = "[::]" + text
		}
		p, err := netip.ParseAddrPort(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// listenNetwork returns the network name for net.Listen. An unspecified IPv6 address accepts IPv4 too, unless the
// list has an IPv4 entry for its port.
func listenNetwork(network string, at netip.AddrPort, all []netip.AddrPort) string {
	if at.Addr().Is4() {
		return network + "4"
	}
	for _, p := range all {
		if p.Addr().Is4() && (p.Port() == at.Port() || p.Port() == 0) || !at.Addr().IsUnspecified() {
			return network + "6"
		}
	}
	return network
}

// Bind opens all addresses for UDP and TCP, and those for TLS. With port 0 it retries until one port is free for all.
func (s *Layer) Bind() error {
	plain, err := parseListenAddrs(s.config.Addr)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		if err = s.bindPlain(plain); err == nil {
			break
		}
		s.unbind()
		if plain[0].Port() != 0 || try == 20 {
			return err
		}
	}
	if err = s.bindTLS(); err != nil {
		s.unbind()
		return err
	}
	s.advertised.init(s)
	return nil
}

// bindPlain opens the UDP and TCP addresses. Those with port 0 all get the port of the first.
func (s *Layer) bindPlain(want []netip.AddrPort) error {
	port := want[0].Port()
	for _, at := range want {
		if at.Port() == 0 {
			at = netip.AddrPortFrom(at.Addr(), port)
		}
		udp, err := net.ListenUDP(listenNetwork("udp", at, want), net.UDPAddrFromAddrPort(at))
		if err != nil {
			return err
		}
		growBuffers(udp)
		bound := boundAddr(at, udp.LocalAddr())
		s.sockets = append(s.sockets, &udpSocket{conn: udp, addr: bound})
		if port == 0 {
			port = bound.Port()
		}
		l, err := net.ListenTCP(listenNetwork("tcp", at, want), net.TCPAddrFromAddrPort(bound))
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, listener{TCPListener: l, addr: bound})
	}
	return nil
}

// bindTLS opens the TLS addresses.
func (s *Layer) bindTLS() error {
	c := &s.config.TLS
	if c.Addr == "" {
		return nil
	}
	want, err := parseListenAddrs(c.Addr)
	if err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	secure, err := c.serverConfig()
	if err != nil {
		return err
	}
	for _, at := range want {
		l, err := net.ListenTCP(listenNetwork("tcp", at, want), net.TCPAddrFromAddrPort(at))
		if err != nil {
			return fmt.Errorf("TLS: %w", err)
		}
		s.listeners = append(s.listeners, listener{TCPListener: l, addr: boundAddr(at, l.Addr()), secure: secure})
	}
	return nil
}

// boundAddr returns the actual address of a socket opened for want: IPv4 stays IPv4.
func boundAddr(want netip.AddrPort, got net.Addr) netip.AddrPort {
	return netip.AddrPortFrom(want.Addr().Unmap(), addrPort(got).Port())
}

// unbind closes all listening sockets.
func (s *Layer) unbind() {
	for _, k := range s.sockets {
		k.conn.Close()
	}
	for _, l := range s.listeners {
		l.Close()
	}
	s.sockets, s.listeners = nil, nil
}

// Addr returns the first bound address. Its port is the same for UDP and TCP.
func (s *Layer) Addr() netip.AddrPort { return s.sockets[0].addr }

// Addrs returns all bound addresses for UDP and TCP, each once.
func (s *Layer) Addrs() (all []netip.AddrPort) {
	for _, x := range s.sockets {
		if !slices.Contains(all, x.addr) {
			all = append(all, x.addr)
		}
	}
	return all
}

// TLSAddr returns the first bound address for TLS, or the zero AddrPort if there is none.
func (s *Layer) TLSAddr() netip.AddrPort {
	for _, l := range s.listeners {
		if l.secure != nil {
			return l.addr
		}
	}
	return netip.AddrPort{}
}
