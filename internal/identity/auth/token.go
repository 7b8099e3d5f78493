package auth

import (
	"hash/crc32"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/seal"
)

const (
	randomLength   = 30 // base62 characters, 178 bits
	checksumLength = 6
	base62         = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// prefix returns the prefix of keys of a kind and an environment, such as soniq_live_.
func prefix(brand string, kind access.Kind, e access.Environment) string {
	words := brand + "_"
	switch {
	case kind == access.PartnerKey && e == access.Sandbox:
		return words + "partner_test_"
	case kind == access.PartnerKey:
		return words + "partner_"
	case e == access.Sandbox:
		return words + "test_"
	}
	return words + "live_"
}

// newToken returns a new key.
func newToken(brand string, kind access.Kind, e access.Environment) string {
	return newSecret(prefix(brand, kind, e))
}

// newSecret returns a new secret: the prefix, 30 random characters, and a checksum of both.
func newSecret(prefix string) string {
	body := prefix + seal.Random(randomLength)
	return body + checksum(body)
}

// accessPrefix and refreshPrefix return the prefixes of OAuth tokens, such as soniq_at_.
func accessPrefix(brand string) string  { return brand + "_at_" }
func refreshPrefix(brand string) string { return brand + "_rt_" }

// isWellFormed reports whether a text has the form of a secret that newSecret creates with the prefix.
func isWellFormed(prefix, text string) bool {
	cut := len(text) - checksumLength
	return len(text) == len(prefix)+randomLength+checksumLength && strings.HasPrefix(text, prefix) && checksum(text[:cut]) == text[cut:]
}

// couldBeKey reports whether a token has the form of a key. Mistyped and truncated keys are rejected without a
// database query.
func couldBeKey(brand, token string) bool {
	for _, kind := range []access.Kind{access.StandardKey, access.PartnerKey} {
		for _, e := range []access.Environment{access.Live, access.Sandbox} {
			if isWellFormed(prefix(brand, kind, e), token) {
				return true
			}
		}
	}
	return false
}

// checksum returns the CRC-32 (IEEE) of the text as six base62 characters, most significant first.
func checksum(text string) string {
	sum := uint64(crc32.ChecksumIEEE([]byte(text)))
	var out [checksumLength]byte
	for i := checksumLength - 1; i >= 0; i-- {
		out[i] = base62[sum%62]
		sum /= 62
	}
	return string(out[:])
}
