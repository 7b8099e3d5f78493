package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"soniq/internal/protocol/sip/transport"
)

// CertificateFiles returns the paths of the TLS certificate and key. Without --tls-cert it creates a self-signed certificate in the
// data folder.
func (c Config) CertificateFiles() (cert, key string, err error) {
	if c.TLSCert != "" {
		return c.TLSCert, c.TLSKey, nil
	}
	cert, key = filepath.Join(c.Data, "tls-cert.pem"), filepath.Join(c.Data, "tls-key.pem")
	if _, err := os.Stat(key); !errors.Is(err, fs.ErrNotExist) {
		return cert, key, err
	}
	_, certPEM, keyPEM, err := transport.SelfSigned(cmp.Or(c.PublicIP, c.SIPDomain))
	if err != nil {
		return "", "", err
	}
	if err := os.WriteFile(cert, certPEM, 0o600); err != nil {
		return "", "", fmt.Errorf("certificate: %w", err)
	}
	return cert, key, os.WriteFile(key, keyPEM, 0o600)
}
