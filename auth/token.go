package auth

import (
	"hash/crc32"
	"strings"

	"soniq/access"
	"soniq/seal"
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

// newToken makes a key: its prefix, 30 random characters, and a checksum over both.
func newToken(brand string, kind access.Kind, e access.Environment) string {
	body := prefix(brand, kind, e) + seal.Random(randomLength)
	return body + checksum(body)
}

// genuine reports whether a token is one that we could have made: a mistyped or cut one is recognised without a
// look into the database.
func genuine(brand, token string) bool {
	cut := len(token) - sumLength
	if cut < 0 || checksum(token[:cut]) != token[cut:] {
		return false
	}
	for _, kind := range []access.Kind{access.StandardKey, access.PartnerKey} {
		for _, e := range []access.Environment{access.Live, access.Sandbox} {
			if p := prefix(brand, kind, e); strings.HasPrefix(token, p) && len(token) == len(p)+randomLength+sumLength {
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
