package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"soniq/internal/platform/certificate"
	"soniq/internal/protocol/sip/transport"
)

// TLS of SIP, HTTPS and SMPP. All show the same certificate.

// openCertificate reads the certificate if any listener uses TLS.
func (s *Server) openCertificate(context.Context) error {
	c := s.Platform.config
	if c.SIPTLS == "" && c.HTTPS == "" && c.SMPPS == "" {
		return nil
	}
	cert, key, err := c.CertificateFiles()
	if err == nil {
		s.certificate, err = certificate.Open(cert, key, s.Platform.log)
	}
	if err != nil {
		return fmt.Errorf("TLS: %w; see --tls-cert and --tls-key", err)
	}
	return nil
}

// Reload reads the files again that may change while the server runs: the certificate. It logs the result.
func (s *Server) Reload() {
	if s.certificate == nil {
		s.Platform.log.Info("nothing to read again: no listener uses TLS")
		return
	}
	if err := s.certificate.Reload(); err != nil {
		s.Platform.log.Warn("the certificate cannot be used; the one from before stays in use", "err", err)
		return
	}
	s.Platform.log.Info("the certificate was read again on request")
}

// tlsConfig returns the configuration of SIP over TLS. It is empty if TLS is off.
func (s *Server) tlsConfig() transport.TLSConfig {
	if s.Platform.config.SIPTLS == "" {
		return transport.TLSConfig{}
	}
	return transport.TLSConfig{Addr: s.Platform.config.SIPTLS, Config: s.certificate.Config()}
}

// listenHTTPS opens the TLS listener for HTTP if --https is set. Browsers give a page the microphone over HTTPS only.
func (s *Server) listenHTTPS() error {
	c := s.Platform.config
	if c.HTTPS == "" {
		return nil
	}
	l, err := net.Listen("tcp", c.HTTPS)
	if err != nil {
		return fmt.Errorf("HTTPS cannot use %s: %w; choose another with --https", c.HTTPS, err)
	}
	conf := s.certificate.Config()
	conf.NextProtos = []string{"http/1.1"}
	s.secure = tls.NewListener(s.connections.Listener(l, false), conf)
	return nil
}
