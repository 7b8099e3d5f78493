package config

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

// ReadSTIRRoots returns the trusted STIR/SHAKEN root certificates (RFC 8226). It returns none if calls are not verified.
func (c *Config) ReadSTIRRoots() ([]*x509.Certificate, error) {
	if c.STIRRoots == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.STIRRoots)
	if err != nil {
		return nil, fmt.Errorf("--stir-roots: %w", err)
	}
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		root, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !root.IsCA {
			return nil, fmt.Errorf("--stir-roots %q: number %d is not the certificate of an authority", c.STIRRoots, len(all)+1)
		}
		all = append(all, root)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("--stir-roots %q has no certificates; it must be a file in PEM", c.STIRRoots)
	}
	return all, nil
}
