package media

import (
	stdcrypto "crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	_ "crypto/sha256" // for stdcrypto.SHA256
	_ "crypto/sha512" // for stdcrypto.SHA384 and SHA512
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
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
	f := fingerprint{hash: "sha-256"}
	return &certificate{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, colonHex(f.digest(der))}, nil
}

// colonHex returns bytes as upper-case hex with colons, as a=fingerprint has them.
func colonHex(b string) string {
	var s strings.Builder
	for i := range len(b) {
		if i > 0 {
			s.WriteByte(':')
		}
		fmt.Fprintf(&s, "%02X", b[i])
	}
	return s.String()
}

func (f fingerprint) algorithm() (stdcrypto.Hash, bool) {
	switch f.hash {
	case "sha-256":
		return stdcrypto.SHA256, true
	case "sha-384":
		return stdcrypto.SHA384, true
	case "sha-512":
		return stdcrypto.SHA512, true
	}
	return 0, false
}

// digest returns the hash of a certificate by the fingerprint's algorithm, or "" if the algorithm is unknown.
func (f fingerprint) digest(der []byte) string {
	a, ok := f.algorithm()
	if !ok {
		return ""
	}
	h := a.New()
	h.Write(der)
	return string(h.Sum(nil))
}

var errFingerprintMismatch = errors.New("the certificate is not the one whose fingerprint was signalled")

// verifyCertificate checks the first certificate of a handshake. One of the signalled fingerprints must match (RFC
// 8122 §5).
func verifyCertificate(prints []fingerprint, certificates [][]byte) error {
	if len(certificates) == 0 {
		return errFingerprintMismatch
	}
	for _, f := range prints {
		if f.value != "" && f.digest(certificates[0]) == f.value {
			return nil
		}
	}
	return errFingerprintMismatch
}
