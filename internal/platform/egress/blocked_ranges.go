package egress

import "net/netip"

// blockedRanges are the ranges of the IANA special-purpose registries that are not the public Internet. IsPrivate and
// similar methods of netip do not cover several of them.
var blockedRanges = prefixes(
	"0.0.0.0/8",         // this network, RFC 791
	"10.0.0.0/8",        // private, RFC 1918
	"100.64.0.0/10",     // shared by carrier NAT, RFC 6598; also metadata services
	"127.0.0.0/8",       // loopback, RFC 1122
	"169.254.0.0/16",    // link-local, RFC 3927; metadata services
	"172.16.0.0/12",     // private, RFC 1918
	"192.0.0.0/24",      // protocol assignments, RFC 6890
	"192.0.2.0/24",      // documentation, RFC 5737
	"192.31.196.0/24",   // AS112, RFC 7535
	"192.52.193.0/24",   // AMT, RFC 7450
	"192.88.99.0/24",    // 6to4 relays, RFC 7526
	"192.168.0.0/16",    // private, RFC 1918
	"192.175.48.0/24",   // AS112, RFC 7534
	"198.18.0.0/15",     // benchmarks, RFC 2544
	"198.51.100.0/24",   // documentation, RFC 5737
	"203.0.113.0/24",    // documentation, RFC 5737
	"224.0.0.0/4",       // multicast, RFC 5771
	"240.0.0.0/4",       // reserved and broadcast, RFC 1112
	"2001::/23",         // protocol assignments: Teredo, benchmarks, ORCHID; RFC 2928
	"2001:db8::/32",     // documentation, RFC 3849
	"2002::/16",         // 6to4, which may hide any IPv4 address, RFC 3056
	"2620:4f:8000::/48", // AS112, RFC 7534
	"3fff::/20",         // documentation, RFC 9637
)

// globalUnicast is the only part of IPv6 for public use (RFC 4291 §2.4). Outside it are loopback, unique local and
// link-local addresses, multicast, and NAT64 (64:ff9b::/96), which may contain any IPv4 address.
var globalUnicast = netip.MustParsePrefix("2000::/3")

func prefixes(text ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(text))
	for i, t := range text {
		all[i] = netip.MustParsePrefix(t)
	}
	return all
}

// Public reports whether an address belongs to the public Internet.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Is6() && !globalUnicast.Contains(a) {
		return false
	}
	for _, p := range blockedRanges {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
