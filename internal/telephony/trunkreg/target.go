package trunkreg

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/trunk"
)

// Target returns the address of a trunk. A host name with the default port is resolved as RFC 3263 says, SRV records first.
func Target(t trunk.Trunk) resolve.Target {
	host := net.JoinHostPort(strings.Trim(t.Host, "[]"), strconv.Itoa(t.Port))
	usual := map[bool]int{false: 5060, true: 5061}[t.Transport == "tls"]
	if _, err := netip.ParseAddr(strings.Trim(t.Host, "[]")); err != nil && t.Port == usual {
		host = t.Host
	}
	return resolve.Target{Host: host, Transport: sipmsg.Transport(t.Transport)}
}
