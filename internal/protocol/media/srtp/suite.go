package srtp

import (
	"crypto/rand"
	"strconv"
	"strings"

	pion "github.com/pion/srtp/v3"
)

// A Suite identifies an SRTP crypto suite (RFC 4568 §6.2, RFC 7714 §14.2).
type Suite uint8

// The supported suites. Zero is none.
const (
	noSuite Suite = iota
	AES128SHA80
	AES256GCM
	AES128GCM
	AES128SHA32
	SuiteCount
)

// OfferedSuites is the order of our offers. The mandatory suite is first, because some phones read no further. The
// suite with the short tag is last.
var OfferedSuites = [...]Suite{AES128SHA80, AES256GCM, AES128GCM, AES128SHA32}

var suiteTable = [...]struct {
	name      string
	profile   pion.ProtectionProfile
	key, salt int // bytes
}{
	AES128SHA80: {"AES_CM_128_HMAC_SHA1_80", pion.ProtectionProfileAes128CmHmacSha1_80, 16, 14},
	AES128SHA32: {"AES_CM_128_HMAC_SHA1_32", pion.ProtectionProfileAes128CmHmacSha1_32, 16, 14},
	AES128GCM:   {"AEAD_AES_128_GCM", pion.ProtectionProfileAeadAes128Gcm, 16, 12},
	AES256GCM:   {"AEAD_AES_256_GCM", pion.ProtectionProfileAeadAes256Gcm, 32, 12},
}

// String returns the suite's name in SDP.
func (s Suite) String() string { return suiteTable[s].name }

func (s Suite) profile() pion.ProtectionProfile { return suiteTable[s].profile }

// KeyLen returns the bytes of the master key.
func (s Suite) KeyLen() int { return suiteTable[s].key }

// SaltLen returns the bytes of the master salt.
func (s Suite) SaltLen() int { return suiteTable[s].salt }

// SuiteByName returns the suite of a name in SDP.
func SuiteByName(name string) (Suite, bool) {
	for _, s := range OfferedSuites {
		if suiteTable[s].name == name {
			return s, true
		}
	}
	return noSuite, false
}

// SuiteOfProfile returns the suite of a profile agreed by DTLS.
func SuiteOfProfile(p pion.ProtectionProfile) (Suite, bool) {
	for _, s := range OfferedSuites {
		if suiteTable[s].profile == p {
			return s, true
		}
	}
	return noSuite, false
}

// A MasterKey is the SRTP master key of one direction of a leg. The zero value is no key.
type MasterKey struct {
	Suite  Suite
	Key    [32]byte // the first keyLen bytes are used
	Salt   [14]byte
	MKI    [4]byte
	mkiLen uint8 // bytes of mki in each packet
}

// Valid reports whether there is a key.
func (k *MasterKey) Valid() bool { return k.Suite != noSuite }

// Context returns an SRTP context that uses the key.
func (k *MasterKey) Context(options ...pion.ContextOption) (*pion.Context, error) {
	if k.mkiLen > 0 {
		options = append(options, pion.MasterKeyIndicator(k.MKI[:k.mkiLen]))
	}
	return pion.CreateContext(k.Key[:k.Suite.KeyLen()], k.Salt[:k.Suite.SaltLen()], k.Suite.profile(), options...)
}

// ParseMKI parses <MKI>:<length in bytes>. Packets carry the MKI. MKIs longer than four bytes are not supported,
// because no phone uses them.
func (k *MasterKey) ParseMKI(v string) bool {
	value, size, _ := strings.Cut(v, ":")
	n, err := strconv.Atoi(size)
	m, err2 := strconv.ParseUint(value, 10, 32)
	if err != nil || err2 != nil || n < 1 || n > len(k.MKI) || n < 4 && m>>(8*n) != 0 {
		return false
	}
	for i := range n {
		k.MKI[n-1-i] = byte(m >> (8 * i))
	}
	k.mkiLen = uint8(n)
	return true
}

// NewMasterKey returns a random key.
func NewMasterKey(s Suite) MasterKey {
	k := MasterKey{Suite: s}
	_, _ = rand.Read(k.Key[:s.KeyLen()]) // never fails
	_, _ = rand.Read(k.Salt[:s.SaltLen()])
	return k
}
