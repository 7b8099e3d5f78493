package vendortest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// authServer is the authorization server of the simulated vendor. A refresh token is valid once: every token response
// contains the next.
type authServer struct {
	vendor  *Vendor
	tokens  map[string]bool // valid access tokens
	refresh map[string]bool
	codes   map[string]code
	issued  int
	Life    int // lifetime of access tokens in seconds; negative: the response contains none

	accepted       map[string]bool // accepted credentials that this server did not issue
	tokenExtras    map[string]any  // extra members of token responses
	redirectExtras url.Values      // extra parameters of redirects
	tokenDelay     time.Duration
	tokenRequests  []url.Values
}

// code is an authorization code that was issued.
type code struct{ challenge, redirect string }

// Client and Secret are the credentials of the app.
const (
	Client = "soniq-client"
	Secret = "soniq-secret"
)

// AcceptCredentials sets the credentials that are accepted in addition to tokens, such as the value of an
// Authorization header.
func (v *Vendor) AcceptCredentials(values ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.authServer.accepted = map[string]bool{}
	for _, x := range values {
		v.authServer.accepted[x] = true
	}
}

// SetExtras sets extra members of token responses, and extra parameters of redirects.
func (v *Vendor) SetExtras(beside map[string]any, withCode url.Values) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.authServer.tokenExtras, v.authServer.redirectExtras = beside, withCode
}

// SetTokenLife sets the lifetime of access tokens in seconds. If it is negative, responses contain no lifetime.
func (v *Vendor) SetTokenLife(seconds int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.authServer.Life = seconds
}

// SetTokenDelay delays token responses.
func (v *Vendor) SetTokenDelay(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.authServer.tokenDelay = d
}

// RevokeTokens revokes all access tokens, and the refresh tokens too if everything is true.
func (v *Vendor) RevokeTokens(everything bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.authServer.tokens)
	if everything {
		clear(v.authServer.refresh)
	}
}

// TokenRequests returns the forms of the requests for tokens and of revocations.
func (v *Vendor) TokenRequests() []url.Values {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]url.Values{}, v.authServer.tokenRequests...)
}

// ValidRefreshTokens returns the number of valid refresh tokens.
func (v *Vendor) ValidRefreshTokens() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.authServer.refresh)
}

// serve handles requests to the authorization server. It returns false for all others.
func (l *authServer) serve(w http.ResponseWriter, r *http.Request) bool {
	switch p := strings.ToLower(r.URL.Path); {
	case strings.HasSuffix(p, "/revoke"):
		l.revoke(w, r)
	case strings.HasSuffix(p, "/token"), strings.HasSuffix(p, "/tokens"):
		l.serveToken(w, r)
	case strings.Contains(p, "authoriz") || strings.HasSuffix(p, "/auth"):
		l.authorize(w, r)
	default:
		return false
	}
	return true
}

// authorize gives consent at once: it redirects with a code.
func (l *authServer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	l.vendor.mu.Lock()
	defer l.vendor.mu.Unlock()
	l.issued++
	name := fmt.Sprintf("code-%d", l.issued)
	l.codes[name] = code{q.Get("code_challenge"), q.Get("redirect_uri")}
	back := url.Values{"code": {name}, "state": {q.Get("state")}}
	maps.Copy(back, l.redirectExtras)
	w.Header().Set("Location", q.Get("redirect_uri")+"?"+back.Encode())
	w.WriteHeader(http.StatusFound)
}

// form reads a token request: a form or JSON, with the app's credentials in the body or in the header. It returns
// false if they are wrong. The caller holds the vendor's mu.
func (l *authServer) form(r *http.Request) (url.Values, bool) {
	form := url.Values{}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		var x map[string]string
		_ = json.NewDecoder(r.Body).Decode(&x)
		for name, value := range x {
			form.Set(name, value)
		}
	} else {
		_ = r.ParseForm()
		maps.Copy(form, r.Form)
	}
	l.tokenRequests = append(l.tokenRequests, form)
	id, secret := form.Get("client_id"), form.Get("client_secret")
	if user, password, ok := r.BasicAuth(); ok {
		id, secret = user, password
	}
	return form, id == Client && secret == Secret
}

func (l *authServer) serveToken(w http.ResponseWriter, r *http.Request) {
	l.vendor.mu.Lock()
	wait := l.tokenDelay
	l.vendor.mu.Unlock()
	time.Sleep(wait) // simulates a slow server
	l.vendor.mu.Lock()
	defer l.vendor.mu.Unlock()
	form, known := l.form(r)
	if !known {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	switch form.Get("grant_type") {
	case "authorization_code":
		c, ok := l.codes[form.Get("code")]
		delete(l.codes, form.Get("code"))
		if !ok || c.redirect != form.Get("redirect_uri") || c.challenge != "" && c.challenge != challenge(form.Get("code_verifier")) {
			refuse(w, http.StatusBadRequest, "invalid_grant")
			return
		}
	case "refresh_token":
		if !l.refresh[form.Get("refresh_token")] {
			refuse(w, http.StatusBadRequest, "invalid_grant")
			return
		}
		delete(l.refresh, form.Get("refresh_token"))
	case "client_credentials":
	default:
		refuse(w, http.StatusBadRequest, "unsupported_grant_type")
		return
	}
	l.issueToken(w, form.Get("grant_type") != "client_credentials")
}

func (l *authServer) issueToken(w http.ResponseWriter, again bool) {
	l.issued++
	x := map[string]any{"access_token": fmt.Sprintf("access-%d", l.issued), "token_type": "bearer"}
	l.tokens[x["access_token"].(string)] = true
	if again {
		x["refresh_token"] = fmt.Sprintf("refresh-%d", l.issued)
		l.refresh[x["refresh_token"].(string)] = true
	}
	if l.Life >= 0 {
		x["expires_in"] = l.Life
	}
	maps.Copy(x, l.tokenExtras)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(x)
}

func (l *authServer) revoke(w http.ResponseWriter, r *http.Request) {
	l.vendor.mu.Lock()
	defer l.vendor.mu.Unlock()
	form, _ := l.form(r)
	delete(l.refresh, form.Get("token"))
	w.WriteHeader(http.StatusOK)
}

// admits reports whether a request has a valid token or another accepted credential.
func (l *authServer) admits(r *http.Request) bool {
	l.vendor.mu.Lock()
	defer l.vendor.mu.Unlock()
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return l.tokens[token] || l.accepted[r.Header.Get("Authorization")] || l.accepted[r.Header.Get("x-api-token")]
}

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why, "error_description": "as the test wants it"})
}
