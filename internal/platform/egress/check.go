package egress

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Fault is the reason why an address cannot be registered, with the remedy.
type Fault struct {
	Code    string // invalid_url, insecure_url or blocked_address
	Message string
}

// Error returns the message.
func (f *Fault) Error() string { return f.Message }

// Unwrap returns ErrBlocked for addresses that are not allowed.
func (f *Fault) Unwrap() error {
	if f.Code == "invalid_url" {
		return nil
	}
	return ErrBlocked
}

func fault(code, format string, args ...any) error {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

const maxURL = 2048

// Check validates an address at registration: syntax, scheme, and hosts that are IP addresses. Errors are *Fault. It
// does not resolve names, which are checked at each connection.
func (g *Guard) Check(address string) error {
	if len(address) > maxURL {
		return fault("invalid_url", "an address may have %d characters", maxURL)
	}
	u, err := url.Parse(address)
	if err != nil {
		return fault("invalid_url", "not a URL; give one such as https://example.com/hooks")
	}
	return g.CheckURL(u)
}

// CheckURL is Check for a parsed address.
func (g *Guard) CheckURL(u *url.URL) error {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return fault("invalid_url", "must begin with https://")
	case u.Opaque != "" || u.Hostname() == "":
		return fault("invalid_url", "has no host; give an address such as https://example.com/hooks")
	case u.User != nil:
		return fault("invalid_url", "must not contain a user name or password; use headers instead")
	case u.Fragment != "":
		return fault("invalid_url", "must not contain a fragment (#…), which is never sent")
	case !goodPort(u.Port()):
		return fault("invalid_url", "has a port that is not between 1 and 65535")
	}
	return g.checkHost(u.Scheme, strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")))
}

func goodPort(p string) bool {
	n, err := strconv.Atoi(p)
	return p == "" || err == nil && n > 0 && n < 65536
}

func (g *Guard) checkHost(scheme, host string) error {
	a, err := netip.ParseAddr(host)
	switch {
	case err == nil:
		return g.checkLiteral(scheme, a.Unmap().WithZone(""))
	case isNumericHost(host):
		return fault("invalid_url", "%s is not a usual notation of an address; write it as four numbers", host)
	case host == "localhost" || strings.HasSuffix(host, ".localhost"):
		return g.checkLiteral(scheme, netip.MustParseAddr("127.0.0.1"))
	case scheme == "http" && len(g.allow) == 0:
		return fault("insecure_url", "must be https; the operator can open targets for http with --allow-targets <network>")
	}
	return nil
}

func (g *Guard) checkLiteral(scheme string, a netip.Addr) error {
	switch {
	case g.allows(a):
		return nil
	case !Public(a):
		return fault("blocked_address", "%s is not a public address; the operator can open it with --allow-targets %s", a, a)
	case scheme == "http":
		return fault("insecure_url", "must be https; the operator can open this target for http with --allow-targets %s", a)
	}
	return nil
}

// isNumericHost reports whether a host such as 2130706433, 0x7f.1 or 127.1 may be read as an IPv4 address by some
// resolvers.
func isNumericHost(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.HasPrefix(last, "0x") {
		return true
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
