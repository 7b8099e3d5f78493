// Package digest authenticates SIP requests by digest, as client and as server (RFC 7616, RFC 8760, RFC 3261 §22).
package digest

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

	"soniq/internal/protocol/sip/sipmsg"
)

// Digest authentication, server side: challenges, nonces, verification (RFC 7616).

// Authenticator is the server side of digest (RFC 7616, RFC 8760). Nonces carry their own MAC, so that a challenge
// needs no memory.
type Authenticator struct {
	realm      string
	secret     [32]byte
	clock      func() time.Duration
	usedNonces *nonceCounts
}

// nonceLifetime is the validity of a nonce.
const nonceLifetime = 5 * time.Minute

func NewAuthenticator(realm string, clock func() time.Duration) Authenticator {
	a := Authenticator{realm: realm, clock: clock, usedNonces: &nonceCounts{}}
	rand.Read(a.secret[:])
	return a
}

// Algorithm is a digest algorithm by its registered name.
type Algorithm string

const (
	algMD5    Algorithm = "MD5"
	algSHA256 Algorithm = "SHA-256"
)

func (a Algorithm) new() hash.Hash {
	if a == algSHA256 {
		return sha256.New()
	}
	return md5.New()
}

// sum returns H (RFC 7616 §3.3) of the parts joined by colons.
func (a Algorithm) sum(parts ...string) string {
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
func (a *Authenticator) nonce(alg Algorithm) string {
	var b [32]byte
	binary.BigEndian.PutUint64(b[:8], uint64(a.clock()))
	rand.Read(b[8:16])
	copy(b[16:], a.mac(b[:16], alg))
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func (a *Authenticator) mac(b []byte, alg Algorithm) []byte {
	h := hmac.New(sha256.New, a.secret[:])
	h.Write(b)
	h.Write([]byte(alg))
	return h.Sum(nil)[:16]
}

// IsFresh reports whether a nonce is ours and not expired.
func (a *Authenticator) IsFresh(nonce string, alg Algorithm) bool {
	b, err := base64.RawURLEncoding.DecodeString(nonce)
	if err != nil || len(b) != 32 || !hmac.Equal(b[16:], a.mac(b[:16], alg)) {
		return false
	}
	age := a.clock() - time.Duration(binary.BigEndian.Uint64(b[:8]))
	return age >= 0 && age < nonceLifetime
}

// Challenge returns the value of WWW-Authenticate or Proxy-Authenticate.
func (a *Authenticator) Challenge(alg Algorithm, stale bool) string {
	s := `Digest realm="` + a.realm + `", nonce="` + a.nonce(alg) + `", algorithm=` + string(alg) + `, qop="auth"`
	if stale {
		s += ", stale=true"
	}
	return s
}

// Authorization is a parsed Authorization value.
type Authorization struct {
	Username, Realm, Nonce, URI, response string
	algorithm, cnonce, qop, nc            string
}

// ParseAuthorization parses Digest credentials. It returns false for other schemes.
func ParseAuthorization(value string) (Authorization, bool) {
	var l Authorization
	scheme, rest := sipmsg.CutSpace(value)
	if !strings.EqualFold(scheme, "Digest") {
		return l, false
	}
	forEachAuthParam(rest, func(name, v string) {
		switch strings.ToLower(name) {
		case "username":
			l.Username = v
		case "realm":
			l.Realm = v
		case "nonce":
			l.Nonce = v
		case "uri":
			l.URI = v
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
	return l, l.Username != "" && l.response != ""
}

// forEachAuthParam calls do for each parameter of a list such as `a=b, c="d"`, the syntax of authentication fields.
func forEachAuthParam(s string, do func(name, value string)) {
	for s != "" {
		var p string
		p, s = sipmsg.CutElement(s)
		name, value, _ := strings.Cut(p, "=")
		do(strings.TrimSpace(name), sipmsg.Unquote(strings.TrimSpace(value)))
	}
}

type Result uint8

const (
	None  Result = iota // no credentials for our realm
	Wrong               // unknown user or wrong password
	Stale               // correct password, but the nonce is old or used
	Good
)

// Hashes holds the stored hashes of an account's password (RFC 7616 §3.4.2).
type Hashes struct {
	MD5        string // hex MD5(username:realm:password)
	SHA256     string // hex SHA-256(username:realm:password), may be empty
	WantSHA256 bool   // the account is challenged with SHA-256 (RFC 8760)
}

// Algorithm returns the algorithm of the account's challenge. Without hashes it is MD5, the only one that every phone
// supports.
func (h Hashes) Algorithm() Algorithm {
	if h.WantSHA256 && h.SHA256 != "" {
		return algSHA256
	}
	return algMD5
}

// Verify checks credentials against the hashes of an account. With known false it does the same computation for an unknown user, so
// that the duration reveals nothing.
func (a *Authenticator) Verify(l Authorization, method string, of Hashes, known bool) Result {
	alg, ha1 := of.Algorithm(), of.MD5
	if alg == algSHA256 {
		ha1 = of.SHA256
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
	if !same || !known || l.Realm != a.realm || !strings.EqualFold(named, string(alg)) {
		return Wrong
	}
	if !a.IsFresh(l.Nonce, alg) || !a.usedNonces.useOnce(l.Nonce, l.nonceCount(), a.clock()) {
		return Stale
	}
	return Good
}

// expectedResponse returns the response of RFC 7616 §3.4.1, or without qop that of RFC 2069.
func (l *Authorization) expectedResponse(alg Algorithm, ha1, method string) string {
	ha2 := alg.sum(method, l.URI)
	if l.qop == "" {
		return alg.sum(ha1, l.Nonce, ha2)
	}
	return alg.sum(ha1, l.Nonce, l.nc, l.cnonce, l.qop, ha2)
}

func (l *Authorization) nonceCount() uint64 {
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
