package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"

	"soniq/internal/platform/egress"
	"soniq/internal/protocol/stir"
)

// This file is about who calls, as the network signs it (STIR/SHAKEN).

// certificateLimits bound the fetching of a carrier's certificate.
var certificateLimits = egress.Limits{Connect: time.Second, Total: 2 * time.Second, Body: 64 << 10, Idle: 1}

// stirRoots are the authorities whose certificates may sign who calls; none where that is not verified.
func (c *Config) stirRoots() ([]*x509.Certificate, error) {
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

// buildVerifier has calls from trunks verified, where the operator says whom to trust.
func (h *house) buildVerifier(now func() time.Time) error {
	all, err := h.config.stirRoots()
	if err != nil || len(all) == 0 {
		return err
	}
	roots := x509.NewCertPool()
	for _, root := range all {
		roots.AddCert(root)
	}
	h.verifier = stir.New(stir.Config{Roots: roots, Client: h.guard.Client(certificateLimits), Now: now})
	return nil
}

// verify is what the switch asks; nil where nobody is to be asked.
func (h *house) verify() func(ctx context.Context, signatures []string, from, to string) stir.Result {
	if h.verifier == nil {
		return nil
	}
	return h.verifier.Verify
}

// callers tells whether calls from trunks are verified.
func (d *doctor) callers() {
	all, err := d.config.stirRoots()
	if err != nil || len(all) == 0 {
		return // settings that are wrong are told before anything is looked at
	}
	d.title("who calls")
	over := 0
	for _, root := range all {
		if time.Now().After(root.NotAfter) {
			over++
		}
	}
	if over > 0 {
		d.hint(fmt.Sprintf("%d of %d authorities in %s have expired", over, len(all), d.config.STIRRoots), "fetch the list again from your country's policy administrator")
		return
	}
	d.ok("calls from trunks are verified with %d authorities", len(all))
}
