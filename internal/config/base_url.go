package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// checkBaseURL names what is wrong with --base-url. Pages, cookies, redirects and the metadata of OAuth are at fixed paths of one host, so
// that a path is refused.
func (c *Config) checkBaseURL() []error {
	if c.BaseURL == "" {
		return nil
	}
	if !IsWebURL(c.BaseURL) {
		return []error{fmt.Errorf("--base-url %q must be an address such as https://voice.example.com", c.BaseURL)}
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return []error{fmt.Errorf("--base-url %q: %w", c.BaseURL, err)}
	}
	if strings.Trim(u.EscapedPath(), "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return []error{fmt.Errorf("--base-url %q has more than a scheme, a host and a port: soniq needs a host name, or a port, of its own; "+
			"give it one, such as %s://voice.example.com, let the proxy forward all its paths unchanged, and set --base-url to it", c.BaseURL, u.Scheme)}
	}
	return nil
}

// LinkBase returns the URL with which links begin: --base-url, or the address at which HTTP listens. If HTTP listens at all addresses of
// this machine, it is one by which other machines probably reach it, and guessed is true.
func (c *Config) LinkBase(listens string) (base string, guessed bool) {
	if c.BaseURL != "" {
		return strings.TrimRight(c.BaseURL, "/"), false
	}
	host, port, err := net.SplitHostPort(listens)
	if err != nil {
		return "http://" + listens, false
	}
	if a, err := netip.ParseAddr(host); host != "" && (err != nil || !a.IsUnspecified()) {
		return "http://" + listens, false
	}
	return "http://" + net.JoinHostPort(c.ownAddress(), port), true
}

// ownAddress returns --public-ip, else the first address of this machine that others can reach, of IPv4 if there is one.
func (c *Config) ownAddress() string {
	if c.PublicIP != "" {
		return c.PublicIP
	}
	found := "127.0.0.1"
	all, _ := net.InterfaceAddrs()
	for _, each := range all {
		p, err := netip.ParsePrefix(each.String())
		if err != nil || !p.Addr().IsGlobalUnicast() {
			continue
		}
		if p.Addr().Is4() {
			return p.Addr().String()
		}
		if found == "127.0.0.1" {
			found = p.Addr().String()
		}
	}
	return found
}
