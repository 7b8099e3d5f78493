package media

import "github.com/pion/srtp/v3"

// An srtpSuite identifies an SRTP crypto suite (RFC 4568 §6.2, RFC 7714 §14.2).
type srtpSuite uint8

const (
	noSuite srtpSuite = iota
	aesSHA80
	aes256GCM
	aes128GCM
	aesSHA32
)

// offeredSuites is the order of our offers. The mandatory suite is first, because some phones read no further. The
// suite with the short tag is last.
var offeredSuites = [...]srtpSuite{aesSHA80, aes256GCM, aes128GCM, aesSHA32}

var suiteTable = [...]struct {
	name      string
	profile   srtp.ProtectionProfile
	key, salt int // bytes
}{
	aesSHA80:  {"AES_CM_128_HMAC_SHA1_80", srtp.ProtectionProfileAes128CmHmacSha1_80, 16, 14},
	aesSHA32:  {"AES_CM_128_HMAC_SHA1_32", srtp.ProtectionProfileAes128CmHmacSha1_32, 16, 14},
	aes128GCM: {"AEAD_AES_128_GCM", srtp.ProtectionProfileAeadAes128Gcm, 16, 12},
	aes256GCM: {"AEAD_AES_256_GCM", srtp.ProtectionProfileAeadAes256Gcm, 32, 12},
}

// String returns the suite's name in SDP.
func (s srtpSuite) String() string { return suiteTable[s].name }

func (s srtpSuite) profile() srtp.ProtectionProfile { return suiteTable[s].profile }

func (s srtpSuite) keyLen() int { return suiteTable[s].key }

func (s srtpSuite) saltLen() int { return suiteTable[s].salt }

func suiteByName(name string) (srtpSuite, bool) {
	for _, s := range offeredSuites {
		if suiteTable[s].name == name {
			return s, true
		}
	}
	return noSuite, false
}

// suiteOfProfile returns the suite of a profile agreed by DTLS.
func suiteOfProfile(p srtp.ProtectionProfile) (srtpSuite, bool) {
	for _, s := range offeredSuites {
		if suiteTable[s].profile == p {
			return s, true
		}
	}
	return noSuite, false
}

// A masterKey is the SRTP master key of one direction of a leg. The zero value is no key.
type masterKey struct {
	suite  srtpSuite
	key    [32]byte // the first keyLen bytes are used
	salt   [14]byte
	mki    [4]byte
	mkiLen uint8 // bytes of mki in each packet
}

func (k *masterKey) valid() bool { return k.suite != noSuite }

func (k *masterKey) context(options ...srtp.ContextOption) (*srtp.Context, error) {
	if k.mkiLen > 0 {
		options = append(options, srtp.MasterKeyIndicator(k.mki[:k.mkiLen]))
	}
	return srtp.CreateContext(k.key[:k.suite.keyLen()], k.salt[:k.suite.saltLen()], k.suite.profile(), options...)
}
