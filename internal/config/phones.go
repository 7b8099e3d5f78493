package config

import (
	"net/url"
)

// SIPNames returns the host names that phones use as registrar, in addition to the addresses of the SIP sockets.
func (c Config) SIPNames() (names []string) {
	if c.ProvisionHost != "" {
		names = append(names, c.ProvisionHost)
	}
	if u, err := url.Parse(c.BaseURL); err == nil && u.Hostname() != "" {
		names = append(names, u.Hostname())
	}
	return names
}
