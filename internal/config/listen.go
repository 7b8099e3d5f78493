package config

import (
	"fmt"
	"net"
	"net/netip"
)

// BindAddress returns the address to bind RTP sockets to: the first IPv4 address in the list of SIP addresses, else the first IPv6 address.
func BindAddress(addresses string) (netip.Addr, error) {
	var first netip.Addr
	for _, address := range SplitList(addresses) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return netip.Addr{}, fmt.Errorf("--sip %q must be host:port, or several with commas", address)
		}
		a, err := netip.ParseAddr(host)
		switch {
		case host == "":
			a = netip.IPv4Unspecified()
		case err != nil:
			return netip.Addr{}, fmt.Errorf("--sip %q must name an IP address, not a host", address)
		case a == netip.IPv6Unspecified():
			a = netip.IPv4Unspecified()
		}
		if !first.IsValid() || a.Is4() && !first.Is4() {
			first = a
		}
	}
	return first, nil
}
