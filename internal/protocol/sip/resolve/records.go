package resolve

import (
	"context"
	"net/netip"
	"time"
)

// DNS records for locating servers.

// Resolver queries DNS for locating servers (RFC 3263). Each answer comes with its TTL. A name that does not exist or
// has no records of the kind gives an empty list and no error. NAPTR looks up the rules of a domain.
type Resolver interface {
	NAPTR(ctx context.Context, domain string) ([]NAPTR, time.Duration, error)
	// SRV looks up a full name such as "_sip._udp.example.com".
	SRV(ctx context.Context, name string) ([]SRV, time.Duration, error)
	// Addresses returns the addresses of a host, best first.
	Addresses(ctx context.Context, host string) ([]netip.Addr, time.Duration, error)
}

// NAPTR is one rule of RFC 3403, without its regular expression: SIP uses
// replacements only (RFC 3263 §4.1).
type NAPTR struct {
	Order, Preference uint16
	Flags, Service    string
	Replacement       string
}

// SRV is one server of a service (RFC 2782).
type SRV struct {
	Target                 string
	Port, Priority, Weight uint16
}
