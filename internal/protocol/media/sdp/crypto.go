package sdp

import (
	"encoding/base64"
	"strconv"
	"strings"

	"soniq/internal/protocol/media/srtp"
)

// maxCryptos is how many a=crypto lines of a body are read.
const maxCryptos = 16

// A cryptoAttribute is one a=crypto line: the key that its sender encrypts with (RFC 4568 §9.1).
type cryptoAttribute struct {
	tag int
	key srtp.MasterKey
}

// parseCrypto parses <tag> <suite> inline:<key and salt>[|lifetime][|MKI:length] [parameters]. It returns false for
// an unsupported or unacceptable line; the caller then tries the next line.
func parseCrypto(v string) (cryptoAttribute, bool) {
	f := strings.Fields(v)
	if len(f) < 3 {
		return cryptoAttribute{}, false
	}
	tag, err := strconv.Atoi(f[0])
	suite, ok := srtp.SuiteByName(f[1])
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
func parseInline(s srtp.Suite, v string) (srtp.MasterKey, bool) {
	v, ok := strings.CutPrefix(v, "inline:")
	if !ok || strings.Contains(v, ";") {
		return srtp.MasterKey{}, false
	}
	part := strings.Split(v, "|")
	// Some senders omit the padding.
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(part[0], "="))
	if err != nil || len(raw) != s.KeyLen()+s.SaltLen() {
		return srtp.MasterKey{}, false
	}
	k := srtp.MasterKey{Suite: s}
	copy(k.Key[:], raw[:s.KeyLen()])
	copy(k.Salt[:], raw[s.KeyLen():])
	for _, p := range part[1:] {
		if strings.Contains(p, ":") && !k.ParseMKI(p) {
			return srtp.MasterKey{}, false
		}
	}
	return k, true
}

// encode returns the value of the a=crypto line.
func (c cryptoAttribute) encode() string {
	raw := append(c.key.Key[:c.key.Suite.KeyLen():c.key.Suite.KeyLen()], c.key.Salt[:c.key.Suite.SaltLen()]...)
	return strconv.Itoa(c.tag) + " " + c.key.Suite.String() + " inline:" + base64.StdEncoding.EncodeToString(raw)
}
