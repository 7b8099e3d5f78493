package stir

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"slices"
	"time"
)

// maxCertificates bounds the length of a certificate chain.
const maxCertificates = 10

// Extensions of STIR certificates.
var (
	tnAuthList = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 26} // RFC 8226 §9: authorised numbers
	// Restrictions of the claims (RFC 8226 §8, RFC 9118 §4).
	claimConstraints         = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 27}
	enhancedClaimConstraints = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 33}
)

// credential is a certificate with a valid chain to one of the roots.
type credential struct {
	key         *ecdsa.PublicKey
	from, until time.Time   // period in which the whole chain is valid
	numbers     *numberList // authorised numbers; nil: all
}

// readCredential parses certificates in PEM. The first one is the signer's.
func readCredential(text []byte, roots *x509.CertPool, now time.Time) (*credential, *Failure) {
	all, f := readCertificates(text)
	if f != nil {
		return nil, f
	}
	leaf := all[0]
	key, ok := leaf.PublicKey.(*ecdsa.PublicKey)
	switch {
	case !ok || key.Curve != elliptic.P256():
		return nil, unsupported("the certificate's key is not one for ES256")
	case leaf.IsCA:
		return nil, unsupported("the certificate is that of an authority, not of a carrier")
	case leaf.KeyUsage != 0 && leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return nil, unsupported("the certificate is not one for signatures")
	}
	c := &credential{key: key, from: leaf.NotBefore, until: leaf.NotAfter}
	if c.numbers, f = authorizedNumbers(leaf); f != nil {
		return nil, f
	}
	return c, c.verifyChain(all, roots, now)
}

func readCertificates(text []byte) (all []*x509.Certificate, f *Failure) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || len(all) == maxCertificates {
			return nil, unsupported("the certificate cannot be read")
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, unreachable("there is no certificate at the address")
	}
	return all, nil
}

// verifyChain verifies the chain to a root, and restricts the validity to that of the whole chain.
func (c *credential) verifyChain(all []*x509.Certificate, roots *x509.CertPool, now time.Time) *Failure {
	between := x509.NewCertPool()
	for _, i := range all[1:] {
		between.AddCert(i)
	}
	chains, err := all[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		return unsupported("the certificate is not trusted: " + err.Error())
	}
	for _, x := range chains[0] {
		if x.NotBefore.After(c.from) {
			c.from = x.NotBefore
		}
		if x.NotAfter.Before(c.until) {
			c.until = x.NotAfter
		}
	}
	return nil
}

// check verifies the signature, and that the certificate is authorised for the number.
func (c *credential) check(p *passport, from string, now time.Time) *Failure {
	switch {
	case now.Before(c.from) || now.After(c.until):
		return unsupported("the certificate is not valid now")
	case !p.signedBy(c.key):
		return invalid("the signature does not fit")
	case c.numbers != nil && !c.numbers.covers(from):
		return unsupported("the certificate is not one for the caller's number")
	}
	return nil
}

// authorizedNumbers returns the numbers for which a certificate may sign, and marks the extension as handled.
func authorizedNumbers(leaf *x509.Certificate) (n *numberList, f *Failure) {
	for _, e := range leaf.Extensions {
		switch {
		case e.Id.Equal(claimConstraints), e.Id.Equal(enhancedClaimConstraints):
			return nil, unsupported("the certificate restricts what it may sign, which is not understood")
		case e.Id.Equal(tnAuthList):
			var err error
			if n, err = parseNumberList(e.Value); err != nil {
				return nil, unsupported("the certificate's list of numbers cannot be read")
			}
			leaf.UnhandledCriticalExtensions = slices.DeleteFunc(leaf.UnhandledCriticalExtensions, e.Id.Equal)
		}
	}
	return n, nil
}
