package config

import (
	"net/url"
)

// SIPNames are the hosts at which phones are told to register, beside the addresses listened at.
func (c Config) SIPNames() (names []string) {
	if c.ProvisionHost != "" {
		names = append(names, c.ProvisionHost)
	}
	if u, err := url.Parse(c.BaseURL); err == nil && u.Hostname() != "" {
		names = append(names, u.Hostname())
	}
	return names
}
