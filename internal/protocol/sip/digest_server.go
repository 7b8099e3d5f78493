package sip

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Digest authentication, server side: challenges, nonces, verification (RFC 7616).

// authenticator is the server side of digest (RFC 7616, RFC 8760). Nonces carry their own MAC, so that a challenge
// needs no memory.
type authenticator struct {
	realm      string
	secret     [32]byte
	clock      func() time.Duration
	usedNonces *nonceCounts
}

// nonceLifetime is the validity of a nonce.
const nonceLifetime = 5 * time.Minute

func newAuthenticator(realm string, clock func() time.Duration) authenticator {
	a := authenticator{realm: realm, clock: clock, usedNonces: &nonceCounts{}}
	rand.Read(a.secret[:])
	return a
}

// algorithm is a digest algorithm by its registered name.
type algorithm string

const (
	algMD5    algorithm = "MD5"
	algSHA256 algorithm = "SHA-256"
)

func (a algorithm) new() hash.Hash {
	if a == algSHA256 {
		return sha256.New()
	}
	return md5.New()
}

// sum returns H (RFC 7616 §3.3) of the parts joined by colons.
func (a algorithm) sum(parts ...string) string {
	h := a.new()
	for i, p := range parts {
		if i > 0 {
			h.Write([]byte{':'})
		}
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// nonce returns a new nonce: time, salt, and an HMAC over both and the algorithm.
func (a *authenticator) nonce(alg algorithm) string {
	var b [32]byte
	binary.BigEndian.PutUint64(b[:8], uint64(a.clock()))
	rand.Read(b[8:16])
	copy(b[16:], a.mac(b[:16], alg))
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func (a *authenticator) mac(b []byte, alg algorithm) []byte {
	h := hmac.New(sha256.New, a.secret[:])
	h.Write(b)
	h.Write([]byte(alg))
	return h.Sum(nil)[:16]
}

// isFresh reports whether a nonce is ours and not expired.
func (a *authenticator) isFresh(nonce string, alg algorithm) bool {
	b, err := base64.RawURLEncoding.DecodeString(nonce)
	if err != nil || len(b) != 32 || !hmac.Equal(b[16:], a.mac(b[:16], alg)) {
		return false
	}
	age := a.clock() - time.Duration(binary.BigEndian.Uint64(b[:8]))
	return age >= 0 && age < nonceLifetime
}

// challenge returns the value of WWW-Authenticate or Proxy-Authenticate.
func (a *authenticator) challenge(alg algorithm, stale bool) string {
	s := `Digest realm="` + a.realm + `", nonce="` + a.nonce(alg) + `", algorithm=` + string(alg) + `, qop="auth"`
	if stale {
		s += ", stale=true"
	}
	return s
}

// authorization is a parsed Authorization value.
type authorization struct {
	username, realm, nonce, uri, response string
	algorithm, cnonce, qop, nc            string
}

// parseAuthorization parses Digest credentials. It returns false for other schemes.
func parseAuthorization(value string) (authorization, bool) {
	var l authorization
	scheme, rest, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Digest") {
		return l, false
	}
	forEachAuthParam(rest, func(name, v string) {
		switch strings.ToLower(name) {
		case "username":
			l.username = v
		case "realm":
			l.realm = v
		case "nonce":
			l.nonce = v
		case "uri":
			l.uri = v
		case "response":
			l.response = v
		case "algorithm":
			l.algorithm = v
		case "cnonce":
			l.cnonce = v
		case "qop":
			l.qop = v
		case "nc":
			l.nc = v
		}
	})
	return l, l.username != "" && l.response != ""
}

// forEachAuthParam calls do for each parameter of a list such as `a=b, c="d"`, the syntax of authentication fields.
func forEachAuthParam(s string, do func(name, value string)) {
	for s != "" {
		var p string
		p, s = cutElement(s)
		name, value, _ := strings.Cut(p, "=")
		do(strings.TrimSpace(name), unquote(strings.TrimSpace(value)))
	}
}

// authorizations returns all Authorization and Proxy-Authorization values of a message.
func (m *message) authorizations() []string {
	var out []string
	for i := range m.fields {
		if k := m.fields[i].kind; k == fAuthorization || k == fProxyAuthorization {
			out = append(out, m.fields[i].value)
		}
	}
	return out
}

type authResult uint8

const (
	authNone  authResult = iota // no credentials for our realm
	authWrong                   // unknown user or wrong password
	authStale                   // correct password, but the nonce is old or used
	authGood
)

// verify checks credentials against an account. With known false it does the same computation for an unknown user, so
// that the duration reveals nothing.
func (a *authenticator) verify(l authorization, method string, acc Account, known bool) authResult {
	alg, ha1 := algMD5, acc.HA1MD5
	if acc.WantSHA256 && acc.HA1SHA256 != "" {
		alg, ha1 = algSHA256, acc.HA1SHA256
	}
	named := l.algorithm
	if named == "" {
		named = string(algMD5)
	}
	if !known || ha1 == "" {
		known, ha1 = false, "-"
	}
	want := l.expectedResponse(alg, ha1, method)
	same := subtle.ConstantTimeCompare([]byte(want), []byte(strings.ToLower(l.response))) == 1
	if !same || !known || l.realm != a.realm || !strings.EqualFold(named, string(alg)) {
		return authWrong
	}
	if !a.isFresh(l.nonce, alg) || !a.usedNonces.useOnce(l.nonce, l.nonceCount(), a.clock()) {
		return authStale
	}
	return authGood
}

// expectedResponse returns the response of RFC 7616 §3.4.1, or without qop that of RFC 2069.
func (l *authorization) expectedResponse(alg algorithm, ha1, method string) string {
	ha2 := alg.sum(method, l.uri)
	if l.qop == "" {
		return alg.sum(ha1, l.nonce, ha2)
	}
	return alg.sum(ha1, l.nonce, l.nc, l.cnonce, l.qop, ha2)
}

func (l *authorization) nonceCount() uint64 {
	n, _ := strconv.ParseUint(l.nc, 16, 32)
	return n
}

// nonceCounts records the used counts of each nonce. Only nonces with a correct password are recorded. Two
// generations of maps expire old nonces.
type nonceCounts struct {
	mu        sync.Mutex // guards the fields below
	current   map[string]countWindow
	previous  map[string]countWindow
	rotatedAt time.Duration
}

// countWindow holds the highest count and a bitmap of the 64 counts from it downwards.
type countWindow struct {
	highest uint64
	seen    uint64
}

const maxNonces = 200_000

// useOnce reports whether this count of the nonce is used for the first time.
func (c *nonceCounts) useOnce(nonce string, count uint64, now time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil || now-c.rotatedAt > nonceLifetime || len(c.current) > maxNonces {
		c.previous, c.current, c.rotatedAt = c.current, make(map[string]countWindow), now
	}
	w, ok := c.current[nonce]
	if !ok {
		w, ok = c.previous[nonce]
	}
	if ok && !w.use(count) {
		return false
	}
	if !ok {
		w = countWindow{highest: count, seen: 1}
	}
	c.current[strings.Clone(nonce)] = w
	return true
}

// use marks a count. It returns false if the count was used or is too old to know.
func (w *countWindow) use(count uint64) bool {
	if count > w.highest {
		w.seen = w.seen<<(count-w.highest) | 1
		w.highest = count
		return true
	}
	bit := w.highest - count
	if bit >= 64 || w.seen&(1<<bit) != 0 {
		return false
	}
	w.seen |= 1 << bit
	return true
}
