package rig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificate holds the file names of a certificate for a server on this machine, its key and the authority that
// signed it.
type Certificate struct{ Cert, Key, Authority string }

// NewCertificate makes a certificate for the loopback addresses, signed by an authority that only the test trusts.
func NewCertificate(t testing.TB) Certificate {
	t.Helper()
	dir := t.TempDir()
	c := Certificate{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "authority.pem")}
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "soniq test authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour)}
	server := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"},
		DNSNames:    []string{"127.0.0.1", "::1"}, // linphone looks for addresses among the names only
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter}
	signer, key := newKey(t), newKey(t)
	writePEM(t, c.Authority, "CERTIFICATE", signed(t, authority, authority, signer, signer))
	writePEM(t, c.Cert, "CERTIFICATE", signed(t, server, authority, key, signer))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, c.Key, "PRIVATE KEY", der)
	return c
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signed(t testing.TB, c, by *x509.Certificate, key, signer *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ListenFlags returns the flags with which a server also listens for TLS with this certificate.
func (c Certificate) ListenFlags() []string {
	return []string{"--sip-tls", "127.0.0.1:0", "--https", "127.0.0.1:0", "--tls-cert", c.Cert, "--tls-key", c.Key}
}
