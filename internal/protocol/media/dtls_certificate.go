package media

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	"soniq/internal/protocol/media/sdp"
)

// certificate is the self-signed certificate of an engine in DTLS handshakes. Peers trust it only through its
// fingerprint in the signalled SDP (RFC 5763 §5).
type certificate struct {
	tls  tls.Certificate
	hash string // SHA-256 fingerprint in SDP notation
}

func newCertificate(now time.Time) (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make DTLS key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make DTLS certificate: %w", err)
	}
	c := x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "rtp"},
		NotBefore: now.AddDate(0, 0, -1), NotAfter: now.AddDate(30, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make DTLS certificate: %w", err)
	}
	f := sdp.Fingerprint{Hash: "sha-256"}
	return &certificate{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, sdp.FormatFingerprint(f.Digest(der))}, nil
}

var errFingerprintMismatch = errors.New("the certificate is not the one whose fingerprint was signalled")

// verifyCertificate checks the first certificate of a handshake. One of the signalled fingerprints must match (RFC
// 8122 §5).
func verifyCertificate(prints []sdp.Fingerprint, certificates [][]byte) error {
	if len(certificates) == 0 {
		return errFingerprintMismatch
	}
	for _, f := range prints {
		if f.Value != "" && f.Digest(certificates[0]) == f.Value {
			return nil
		}
	}
	return errFingerprintMismatch
}
