package provisioning

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// httpAuth authenticates phones by HTTP Digest (RFC 7616, with MD5, which phones support) or Basic (RFC 7617).
type httpAuth struct {
	realm string
	key   []byte // of nonces
	now   func() time.Time
}

const nonceLife = 5 * time.Minute

func newHTTPAuth(realm string, now func() time.Time) *httpAuth {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // crypto/rand never fails
	return &httpAuth{realm, key, now}
}

// authResult is the result of an authentication.
type authResult int

const (
	authMissing authResult = iota
	authStale              // correct, but with an unknown or expired nonce
	authWrong
	authOK
)

// challenge adds the WWW-Authenticate headers.
func (d *httpAuth) challenge(h http.Header, v authResult) {
	again := ""
	if v == authStale {
		again = ", stale=true"
	}
	h.Add("Www-Authenticate", fmt.Sprintf(`Digest realm="%s", nonce="%s", qop="auth", algorithm=MD5%s`, d.realm, d.nonce(), again))
	h.Add("Www-Authenticate", fmt.Sprintf(`Basic realm="%s", charset="UTF-8"`, d.realm))
}

// check compares the credentials of a request with the login.
func (d *httpAuth) check(r *http.Request, user, password string) authResult {
	value := r.Header.Get("Authorization")
	scheme, rest, _ := strings.Cut(value, " ")
	switch {
	case value == "":
		return authMissing
	case strings.EqualFold(scheme, "Digest"):
		return d.digest(r, rest, user, password)
	}
	u, p, ok := r.BasicAuth()
	if ok && constantTimeEqual(u, user) && constantTimeEqual(p, password) {
		return authOK
	}
	return authWrong
}

func constantTimeEqual(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

var parameter = regexp.MustCompile(`([a-zA-Z0-9]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))`)

const maxAuthHeader = 4096

// digest checks a Digest response (RFC 7616 §3.4.1) with qop=auth, or without qop (RFC 2069).
func (d *httpAuth) digest(r *http.Request, text, user, password string) authResult {
	if len(text) > maxAuthHeader {
		return authWrong
	}
	p := map[string]string{}
	for _, m := range parameter.FindAllStringSubmatch(text, -1) {
		p[strings.ToLower(m[1])] = m[2] + m[3]
	}
	if !constantTimeEqual(p["username"], user) || p["realm"] != d.realm || !uriMatches(p["uri"], r) ||
		!strings.EqualFold(orDefault(p["algorithm"], "MD5"), "MD5") {
		return authWrong
	}
	ha1, ha2 := md5hex(user+":"+d.realm+":"+password), md5hex(r.Method+":"+p["uri"])
	middle := p["nonce"]
	if p["qop"] == "auth" {
		middle += ":" + p["nc"] + ":" + p["cnonce"] + ":auth"
	} else if p["qop"] != "" {
		return authWrong
	}
	if !constantTimeEqual(strings.ToLower(p["response"]), md5hex(ha1+":"+middle+":"+ha2)) {
		return authWrong
	}
	if !d.ownNonce(p["nonce"]) || d.expired(p["nonce"]) {
		return authStale
	}
	return authOK
}

// uriMatches reports whether the digest's uri has the path of the request. Some phones send an absolute URI.
func uriMatches(uri string, r *http.Request) bool {
	u, err := url.Parse(uri)
	return err == nil && u.Path == r.URL.Path
}

// nonce returns a timestamp with its HMAC, so that the server stores no nonces.
func (d *httpAuth) nonce() string {
	at := strconv.FormatInt(d.now().Unix(), 36)
	return at + "." + d.sign(at)
}

func (d *httpAuth) sign(at string) string {
	m := hmac.New(sha256.New, d.key)
	m.Write([]byte(at))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

// ownNonce reports whether this process created a nonce. After a restart phones get a new one by a challenge with
// stale=true.
func (d *httpAuth) ownNonce(nonce string) bool {
	at, mark, _ := strings.Cut(nonce, ".")
	return constantTimeEqual(mark, d.sign(at))
}

func (d *httpAuth) expired(nonce string) bool {
	at, _, _ := strings.Cut(nonce, ".")
	seconds, err := strconv.ParseInt(at, 36, 64)
	return err != nil || d.now().Sub(time.Unix(seconds, 0)) > nonceLife
}

func md5hex(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func orDefault(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
