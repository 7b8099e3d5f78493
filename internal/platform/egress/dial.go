package egress

import (
	"context"
	"net"
	"net/netip"
	"syscall"
)

// Dial connects by TCP to an allowed address. plain reports whether the operator listed it, so that it may be used
// without encryption.
func (g *Guard) Dial(ctx context.Context, address string) (c net.Conn, plain bool, err error) {
	if g.held != nil {
		return nil, false, g.held
	}
	d := &net.Dialer{Timeout: Limits{}.withDefaults().Connect, Resolver: g.resolver,
		Control: func(_, address string, _ syscall.RawConn) error { return control(address, g.allowedForHTTPS) }}
	if c, err = d.DialContext(ctx, "tcp", address); err != nil {
		return nil, false, err
	}
	to, err := netip.ParseAddrPort(c.RemoteAddr().String())
	return c, err == nil && g.allowedForHTTP(to.Addr()) == nil, err
}
