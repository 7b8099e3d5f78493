package transport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
)

// TLS: verification of the peer, self-signed certificates.

// TLSConfig holds the addresses and the certificate for incoming TLS. TLS 1.2 is the minimum.
type TLSConfig struct {
	// Addr is a list like Config.Addr. Empty disables TLS.
	Addr string
	// Config has the certificate.
	Config *tls.Config
}

// listener is one listening TCP socket. secure is set if it accepts TLS.
type listener struct {
	*net.TCPListener
	addr   netip.AddrPort
	secure *tls.Config
}

// serverConfig returns the configuration for incoming connections.
func (c *TLSConfig) serverConfig() (*tls.Config, error) {
	if c.Config == nil {
		return nil, errors.New("TLS: no certificate given")
	}
	conf := c.Config.Clone()
	conf.MinVersion = max(conf.MinVersion, tls.VersionTLS12)
	return conf, nil
}

// dialStream connects over TCP. For TLS it verifies that the peer is key.name (RFC 5922 §7.3), or its address if the
// name is empty.
func (s *Layer) dialStream(ctx context.Context, key ConnKey) (net.Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", key.Addr.String())
	if err != nil || key.Transport != sipmsg.TLS {
		return nc, err
	}
	name := key.Name
	if name == "" {
		name = key.Addr.Addr().String()
	}
	tc := tls.Client(nc, &tls.Config{ServerName: name, RootCAs: s.config.RootCAs, MinVersion: tls.VersionTLS12})
	if err := tc.HandshakeContext(ctx); err != nil {
		nc.Close()
		s.config.Logger.Warn("sip: TLS handshake with peer failed", "peer", key.Addr, "name", name, "error", err)
		return nil, err
	}
	return tc, nil
}

// handshake completes the TLS handshake of an incoming connection.
func (s *streamChannel) handshake(c *Conn) bool {
	tc, ok := s.nc.(*tls.Conn)
	if !ok || c.WeConnected {
		return true
	}
	ctx, cancel := context.WithTimeout(c.layer.ctx, messageTimeout)
	defer cancel()
	return tc.HandshakeContext(ctx) == nil
}

// SelfSigned creates a certificate for a host, an address or a name, valid for ten years. certPEM and keyPEM are the
// contents for files.
func SelfSigned(host string) (cert tls.Certificate, certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return cert, nil, nil, fmt.Errorf("generate a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return cert, nil, nil, fmt.Errorf("generate a serial number: %w", err)
	}
	now := time.Now()
	form := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: host}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		form.IPAddresses = []net.IP{ip}
	} else {
		form.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return cert, nil, nil, fmt.Errorf("create a certificate for %s: %w", host, err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return cert, nil, nil, fmt.Errorf("encode the key: %w", err)
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	cert, err = tls.X509KeyPair(certPEM, keyPEM)
	return cert, certPEM, keyPEM, err
}
