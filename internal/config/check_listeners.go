package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// checkListeners checks the addresses of the listeners that are off by default, and the certificate of those with TLS.
func (c *Config) checkListeners() (wrong []error) {
	for _, l := range []struct{ name, address string }{{"https", c.HTTPS}, {"sip-tls", c.SIPTLS}, {"smpp", c.SMPP}, {"smpps", c.SMPPS}} {
		for _, address := range SplitList(l.address) {
			_, port, err := net.SplitHostPort(address)
			if err == nil {
				_, err = strconv.ParseUint(port, 10, 16)
			}
			if err != nil {
				wrong = append(wrong, fmt.Errorf("--%s %q must be host:port, such as 0.0.0.0:5061", l.name, address))
			}
		}
	}
	if c.HTTPS == "" && c.SIPTLS == "" && c.SMPPS == "" {
		return wrong
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return append(wrong, errors.New("--tls-cert and --tls-key belong together: give both, or none"))
	}
	if c.TLSCert != "" {
		if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
			wrong = append(wrong, fmt.Errorf("--tls-cert %q and --tls-key %q: %w", c.TLSCert, c.TLSKey, err))
		}
	}
	return wrong
}
