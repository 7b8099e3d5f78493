package auth

import (
	"hash/crc32"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/seal"
)

const (
	randomLength = 30 // base62 characters, 178 bits
	sumLength    = 6
	base62       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// prefix is how keys of a kind and an environment begin, such as soniq_live_.
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

// newToken makes a key.
func newToken(brand string, kind access.Kind, e access.Environment) string {
	return newSecret(prefix(brand, kind, e))
}

// newSecret makes a secret: its prefix, 30 random characters, and a checksum over both.
func newSecret(prefix string) string {
	body := prefix + seal.Random(randomLength)
	return body + checksum(body)
}

// accessPrefix and refreshPrefix are how the tokens of OAuth begin, such as soniq_at_.
func accessPrefix(brand string) string  { return brand + "_at_" }
func refreshPrefix(brand string) string { return brand + "_rt_" }

// formed reports whether a text could be a secret that newSecret made with the prefix.
func formed(prefix, text string) bool {
	cut := len(text) - sumLength
	return len(text) == len(prefix)+randomLength+sumLength && strings.HasPrefix(text, prefix) && checksum(text[:cut]) == text[cut:]
}

// genuine reports whether a token is one that we could have made: a mistyped or cut one is recognised without a
// look into the database.
func genuine(brand, token string) bool {
	for _, kind := range []access.Kind{access.StandardKey, access.PartnerKey} {
		for _, e := range []access.Environment{access.Live, access.Sandbox} {
			if formed(prefix(brand, kind, e), token) {
				return true
			}
		}
	}
	return false
}

// checksum is the CRC-32 (IEEE) of the text as six base62 characters, most significant first.
func checksum(text string) string {
	sum := uint64(crc32.ChecksumIEEE([]byte(text)))
	var out [sumLength]byte
	for i := sumLength - 1; i >= 0; i-- {
		out[i] = base62[sum%62]
		sum /= 62
	}
	return string(out[:])
}
