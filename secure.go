package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"soniq/internal/protocol/sip"
)

// This file gives the doors that encrypt their certificate: that of the operator, or one of our own.

// tlsConfig is how SIP over TLS is listened for.
func (n *node) tlsConfig() (sip.TLSConfig, error) {
	c := n.house.config
	if c.SIPTLS == "" {
		return sip.TLSConfig{}, nil
	}
	cert, key, err := c.certificate()
	return sip.TLSConfig{Addr: c.SIPTLS, CertFile: cert, KeyFile: key}, err
}

// certificate names the files of the operator's certificate, or makes one that is signed by itself and kept in the data folder.
func (c Config) certificate() (cert, key string, err error) {
	if c.TLSCert != "" {
		return c.TLSCert, c.TLSKey, nil
	}
	cert, key = filepath.Join(c.Data, "tls-cert.pem"), filepath.Join(c.Data, "tls-key.pem")
	if _, err := os.Stat(key); !errors.Is(err, fs.ErrNotExist) {
		return cert, key, err
	}
	_, certPEM, keyPEM, err := sip.SelfSigned(first(c.PublicIP, c.SIPDomain))
	if err != nil {
		return "", "", err
	}
	if err := os.WriteFile(cert, certPEM, 0o600); err != nil {
		return "", "", fmt.Errorf("certificate: %w", err)
	}
	return cert, key, os.WriteFile(key, keyPEM, 0o600)
}

// keyPair is the certificate with its key.
func (c Config) keyPair() (tls.Certificate, error) {
	cert, key, err := c.certificate()
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.LoadX509KeyPair(cert, key)
}

// listenHTTPS opens the door at which what HTTP serves is served over TLS too, where an address is given: browsers give their microphone to nobody else.
func (n *node) listenHTTPS() error {
	c := n.house.config
	if c.HTTPS == "" {
		return nil
	}
	pair, err := c.keyPair()
	if err != nil {
		return fmt.Errorf("HTTPS: %w; see --tls-cert and --tls-key", err)
	}
	l, err := net.Listen("tcp", c.HTTPS)
	if err != nil {
		return fmt.Errorf("HTTPS cannot use %s: %w; choose another with --https", c.HTTPS, err)
	}
	n.secure = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	return nil
}
