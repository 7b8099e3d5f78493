package server

import (
	"crypto/tls"
	"fmt"
	"net"

	"soniq/internal/protocol/sip"
)

// This file gives the doors that encrypt their certificate: that of the operator, or one of our own.

// tlsConfig is how SIP over TLS is listened for.
func (n *Server) tlsConfig() (sip.TLSConfig, error) {
	c := n.Platform.config
	if c.SIPTLS == "" {
		return sip.TLSConfig{}, nil
	}
	cert, key, err := c.CertificateFiles()
	return sip.TLSConfig{Addr: c.SIPTLS, CertFile: cert, KeyFile: key}, err
}

// listenHTTPS opens the door at which what HTTP serves is served over TLS too, where an address is given: browsers give their microphone to nobody else.
func (n *Server) listenHTTPS() error {
	c := n.Platform.config
	if c.HTTPS == "" {
		return nil
	}
	pair, err := c.KeyPair()
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
