package server

import (
	"crypto/tls"
	"fmt"
	"net"

	"soniq/internal/protocol/sip/transport"
)

// TLS configuration of SIP, HTTPS and SMPP.

// tlsConfig returns the configuration of SIP over TLS. It is empty if TLS is off.
func (s *Server) tlsConfig() (transport.TLSConfig, error) {
	c := s.Platform.config
	if c.SIPTLS == "" {
		return transport.TLSConfig{}, nil
	}
	cert, key, err := c.CertificateFiles()
	return transport.TLSConfig{Addr: c.SIPTLS, CertFile: cert, KeyFile: key}, err
}

// listenHTTPS opens the TLS listener for HTTP if --https is set. Browsers give a page the microphone over HTTPS only.
func (s *Server) listenHTTPS() error {
	c := s.Platform.config
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
	s.secure = tls.NewListener(s.connections.Listener(l, false), &tls.Config{Certificates: []tls.Certificate{pair},
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	return nil
}
