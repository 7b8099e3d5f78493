package server

import (
	"context"
	"crypto/x509"
	"time"

	"soniq/internal/platform/egress"
	"soniq/internal/protocol/stir"
)

// This file configures the verification of signed caller identities (STIR/SHAKEN, RFC 8224).

// certificateLimits bounds the download of a carrier's certificate.
var certificateLimits = egress.Limits{Connect: time.Second, Total: 2 * time.Second, Body: 64 << 10, Idle: 1}

// buildVerifier constructs the verifier of calls from trunks if --stir-roots is set.
func (p *Platform) buildVerifier(now func() time.Time) error {
	all, err := p.config.ReadSTIRRoots()
	if err != nil || len(all) == 0 {
		return err
	}
	roots := x509.NewCertPool()
	for _, root := range all {
		roots.AddCert(root)
	}
	p.verifier = stir.New(stir.Config{Roots: roots, Client: p.guard.Client(certificateLimits), Now: now})
	return nil
}

// verify returns the function that the switch verifies calls with, or nil if calls are not verified.
func (p *Platform) verify() func(ctx context.Context, signatures []string, from, to string) stir.Result {
	if p.verifier == nil {
		return nil
	}
	return p.verifier.Verify
}
