package sdp

import (
	"testing"

	"soniq/internal/protocol/media/srtp"
)

func TestParseCrypto_Lines(t *testing.T) {
	t.Parallel()
	const key = "inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz" // RFC 4568 §9.1
	for line, ok := range map[string]bool{
		"1 AES_CM_128_HMAC_SHA1_80 " + key + "|2^20|1:4 FEC_ORDER=FEC_SRTP": false,
		"1 AES_CM_128_HMAC_SHA1_80 " + key + "|2^20|1:4":                    true,
		"1 AES_CM_128_HMAC_SHA1_80 " + key + "|1:4":                         true,
		"1 AES_CM_128_HMAC_SHA1_80 " + key + "|1:5":                         false,
		"1 AES_CM_128_HMAC_SHA1_80 " + key + "|300:1":                       false,
		"1 AES_CM_128_HMAC_SHA1_32 " + key + "|2^31 WSH=128":                true,
		"1 AES_CM_128_HMAC_SHA1_80 " + key + " UNENCRYPTED_SRTP":            false,
		"1 AES_CM_128_HMAC_SHA1_80 " + key + " UNAUTHENTICATED_SRTP":        false,
		"1 AES_CM_128_HMAC_SHA1_80 " + key + ";" + key:                      false,
		"1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19z":                         false,
		"1 AEAD_AES_128_GCM " + key:                                         false, // two bytes too many
		"1 F8_128_HMAC_SHA1_80 " + key:                                      false,
		"x AES_CM_128_HMAC_SHA1_80 " + key:                                  false,
		"1 AES_CM_128_HMAC_SHA1_80":                                         false,
	} {
		if c, got := parseCrypto(line); got != ok {
			t.Errorf("%s: accepted %v as %+v", line, got, c)
		}
	}
	for _, s := range srtp.OfferedSuites {
		c := cryptoAttribute{3, srtp.NewMasterKey(s)}
		if back, ok := parseCrypto(c.encode()); !ok || back != c {
			t.Errorf("%q came back as %+v", c.encode(), back)
		}
	}
}
