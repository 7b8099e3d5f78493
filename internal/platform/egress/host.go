package egress

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// CheckHost validates a host at registration: a name, or an address that is allowed. Errors are *Fault. Names are
// resolved and checked at each connection.
func (g *Guard) CheckHost(host string) error {
	if host == "" || strings.ContainsAny(host, "/@?#[] ") {
		return fault("invalid_host", "must be a host name or an address, without port")
	}
	return g.checkHost("https", strings.ToLower(strings.TrimSuffix(host, ".")))
}

// CheckMedia returns the reason why audio may not be sent to an address that a peer named in SDP, or nil. Allowed are
// the address of its signalling, and the addresses that CheckAddress allows. A peer in a private network may name
// others there, but neither this machine nor link-local addresses. A peer on this machine may name any of them: it is
// a proxy that the operator runs.
func (g *Guard) CheckMedia(media, signalling netip.Addr) error {
	media, signalling = media.Unmap().WithZone(""), signalling.Unmap().WithZone("")
	switch {
	case media == signalling, g.CheckAddress(media) == nil:
		return nil
	case !signalling.IsValid() || Public(signalling):
	case media.IsPrivate() || shared.Contains(media):
		return nil
	}
	return fmt.Errorf("%w: audio to %s, by a peer at %s", ErrBlocked, media, signalling)
}

// shared are the addresses between a provider and its customers' routers (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// IsWebAddress reports whether a text is the address of a page that people may open: http or https, with a host. Other schemes, such as
// javascript and data, run code in the page that shows the link.
func IsWebAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= maxURL && (u.Scheme == "https" || u.Scheme == "http") && u.Opaque == "" && u.Hostname() != ""
}
