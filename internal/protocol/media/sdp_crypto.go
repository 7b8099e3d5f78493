package media

import (
	"crypto/rand"
	"encoding/base64"
	"strconv"
	"strings"
)

// maxCryptos is how many a=crypto lines of a body are read.
const maxCryptos = 16

// A cryptoAttribute is one a=crypto line: the key that its sender encrypts with (RFC 4568 §9.1).
type cryptoAttribute struct {
	tag int
	key masterKey
}

// parseCrypto parses <tag> <suite> inline:<key and salt>[|lifetime][|MKI:length] [parameters]. It returns false for
// an unsupported or unacceptable line; the caller then tries the next line.
func parseCrypto(v string) (cryptoAttribute, bool) {
	f := strings.Fields(v)
	if len(f) < 3 {
		return cryptoAttribute{}, false
	}
	tag, err := strconv.Atoi(f[0])
	suite, ok := suiteByName(f[1])
	if err != nil || tag < 0 || tag > 999999999 || !ok || !parametersSupported(f[3:]) {
		return cryptoAttribute{}, false
	}
	key, ok := parseInline(suite, f[2])
	return cryptoAttribute{tag, key}, ok
}

// parametersSupported reports whether all session parameters are supported. A window size is only a hint, and
// parameters that begin with "-" may be ignored (RFC 4568 §6.3). Streams without encryption or authentication are
// refused.
func parametersSupported(parameters []string) bool {
	for _, p := range parameters {
		if !strings.HasPrefix(p, "WSH=") && !strings.HasPrefix(p, "-") {
			return false
		}
	}
	return true
}

// parseInline parses the key parameter of a line. It returns false if there are several keys (RFC 4568 §6.1).
func parseInline(s srtpSuite, v string) (masterKey, bool) {
	v, ok := strings.CutPrefix(v, "inline:")
	if !ok || strings.Contains(v, ";") {
		return masterKey{}, false
	}
	part := strings.Split(v, "|")
	// Some senders omit the padding.
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(part[0], "="))
	if err != nil || len(raw) != s.keyLen()+s.saltLen() {
		return masterKey{}, false
	}
	k := masterKey{suite: s}
	copy(k.key[:], raw[:s.keyLen()])
	copy(k.salt[:], raw[s.keyLen():])
	for _, p := range part[1:] {
		if strings.Contains(p, ":") && !k.parseMKI(p) {
			return masterKey{}, false
		}
	}
	return k, true
}

// parseMKI parses <MKI>:<length in bytes>. Packets carry the MKI. MKIs longer than four bytes are not supported,
// because no phone uses them.
func (k *masterKey) parseMKI(v string) bool {
	value, size, _ := strings.Cut(v, ":")
	n, err := strconv.Atoi(size)
	m, err2 := strconv.ParseUint(value, 10, 32)
	if err != nil || err2 != nil || n < 1 || n > len(k.mki) || n < 4 && m>>(8*n) != 0 {
		return false
	}
	for i := range n {
		k.mki[n-1-i] = byte(m >> (8 * i))
	}
	k.mkiLen = uint8(n)
	return true
}

// encode returns the value of the a=crypto line.
func (c cryptoAttribute) encode() string {
	raw := append(c.key.key[:c.key.suite.keyLen():c.key.suite.keyLen()], c.key.salt[:c.key.suite.saltLen()]...)
	return strconv.Itoa(c.tag) + " " + c.key.suite.String() + " inline:" + base64.StdEncoding.EncodeToString(raw)
}

// newMasterKey returns a random key.
func newMasterKey(s srtpSuite) masterKey {
	k := masterKey{suite: s}
	_, _ = rand.Read(k.key[:s.keyLen()]) // never fails
	_, _ = rand.Read(k.salt[:s.saltLen()])
	return k
}
