package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const secretPrefix = "whsec_"

// SecretFrom encodes a key, usually of 32 bytes, as a secret.
func SecretFrom(key []byte) string { return secretPrefix + base64.StdEncoding.EncodeToString(key) }

// IsSecret reports whether text has the form of a secret.
func IsSecret(text string) bool {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	_, err := base64.StdEncoding.DecodeString(encoded)
	return ok && err == nil && encoded != ""
}

// newSecret returns 256 random bits in the format of Standard Webhooks.
func newSecret() string {
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // crypto/rand does not fail on the systems we run on
	}
	return SecretFrom(b[:])
}

func secretHint(secret string) string { return secret[len(secret)-4:] }

func hmacSHA256(key []byte, message string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(message))
	return m.Sum(nil)
}

// bodySignature returns the x-service-signature: an HMAC-SHA256 of the body, keyed with the whole secret as it was
// shown.
func bodySignature(secret, body string) string {
	return hex.EncodeToString(hmacSHA256([]byte(secret), body))
}

// standardSignature returns the signature of Standard Webhooks: over id, time and body, keyed with the decoded
// secret.
func standardSignature(secret, id string, at int64, body string) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		return ""
	}
	message := id + "." + strconv.FormatInt(at, 10) + "." + body
	return "v1," + base64.StdEncoding.EncodeToString(hmacSHA256(key, message))
}

// secrets are the current secret of a delivery, and the previous one during a rotation.
type secrets struct{ current, previous string }

func (s *Service) secrets(e *endpoint, now time.Time) (k secrets, err error) {
	b, err := s.cfg.Seal.Unseal(e.Secret, sealAAD(e.Org, e.ID, "secret"))
	if err != nil {
		return k, fmt.Errorf("read secret of webhook %s: %w", e.ID, err)
	}
	k.current = string(b)
	if len(e.PreviousSecret) == 0 || !now.Before(e.PreviousUntil.Time) {
		return k, nil
	}
	if b, err = s.cfg.Seal.Unseal(e.PreviousSecret, sealAAD(e.Org, e.ID, "previous_secret")); err != nil {
		return k, fmt.Errorf("read previous secret of webhook %s: %w", e.ID, err)
	}
	k.previous = string(b)
	return k, nil
}

// sign adds the signature headers. Their names are in lower case, as in the documentation.
func (k secrets) sign(h http.Header, prefix, eventID, body string, now time.Time) {
	at := now.Unix()
	signatures := standardSignature(k.current, eventID, at, body)
	h[prefix+"-signature"] = []string{bodySignature(k.current, body)}
	if k.previous != "" {
		h[prefix+"-signature-previous"] = []string{bodySignature(k.previous, body)}
		signatures += " " + standardSignature(k.previous, eventID, at, body)
	}
	h["webhook-id"] = []string{eventID}
	h["webhook-timestamp"] = []string{strconv.FormatInt(at, 10)}
	h["webhook-signature"] = []string{signatures}
}
