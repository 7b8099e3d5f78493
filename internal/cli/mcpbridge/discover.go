package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// authServer is the authorization server of a tool server, with the resource and the scopes to ask for.
type authServer struct {
	resource, scope string
	server          struct {
		Issuer     string   `json:"issuer"`
		Authorize  string   `json:"authorization_endpoint"`
		Token      string   `json:"token_endpoint"`
		Revoke     string   `json:"revocation_endpoint"`
		Introspect string   `json:"introspection_endpoint"`
		Challenges []string `json:"code_challenge_methods_supported"`
		Identified bool     `json:"authorization_response_iss_parameter_supported"`
	}
}

// discover finds the authorization server: from the metadata of the tool server (RFC 9728), then from its own (RFC
// 8414).
func (l *Login) discover(ctx context.Context) (f authServer, err error) {
	if err := checkSecure(l.URL.String(), "--url"); err != nil {
		return f, err
	}
	challenge, err := l.challenge(ctx)
	if err != nil {
		return f, err
	}
	described := Param(challenge, "resource_metadata")
	if described == "" {
		described = l.URL.Scheme + "://" + l.URL.Host + "/.well-known/oauth-protected-resource" + l.URL.Path
	}
	var resource struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	status, err := l.fetchJSON(ctx, described, nil, "", &resource)
	switch {
	case err != nil:
		return f, err
	case status != http.StatusOK || len(resource.Servers) == 0:
		return f, fmt.Errorf("%s does not say who lets people in (HTTP %d)", l.URL, status)
	case !sameAddress(resource.Resource, l.URL.String()):
		return f, fmt.Errorf("the server calls itself %s: give that as --url", resource.Resource)
	}
	f.resource, f.scope = resource.Resource, Param(challenge, "scope")
	return f, l.describe(ctx, &f, resource.Servers[0])
}

// CheckAddress returns an error if the address is neither https nor on this machine.
func (l *Login) CheckAddress() error { return checkSecure(l.URL.String(), "--url") }

// CheckServer returns an error if there is no tool server at the address.
func (l *Login) CheckServer(ctx context.Context) error {
	challenge, err := l.challenge(ctx)
	if err == nil && Param(challenge, "resource_metadata") == "" {
		err = errors.New("something else answers; is the address right?")
	}
	return err
}

// challenge returns the WWW-Authenticate header of a request without a credential.
func (l *Login) challenge(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URL.String(), nil)
	if err != nil {
		return "", err
	}
	answer, err := l.Client.Do(r)
	if err != nil {
		return "", err
	}
	_ = answer.Body.Close()
	return answer.Header.Get("Www-Authenticate"), nil
}

// describe reads the metadata of the authorization server into f. It tries both places of the path of the issuer.
func (l *Login) describe(ctx context.Context, f *authServer, issuer string) error {
	if err := checkSecure(issuer, "the issuer"); err != nil {
		return err
	}
	u, _ := url.Parse(issuer)
	at, way := u.Scheme+"://"+u.Host, strings.TrimRight(u.Path, "/")
	const form = "/.well-known/oauth-authorization-server"
	status := 0
	for _, where := range []string{at + form + way, at + way + form} {
		var err error
		if status, err = l.fetchJSON(ctx, where, nil, "", &f.server); err != nil {
			return err
		}
		if status == http.StatusOK {
			break
		}
	}
	if status != http.StatusOK || f.server.Issuer != issuer {
		return fmt.Errorf("%s does not describe itself as it is called", issuer)
	}
	if !slices.Contains(f.server.Challenges, "S256") {
		return fmt.Errorf("%s does not know PKCE (S256)", issuer)
	}
	for _, endpoint := range []string{f.server.Authorize, f.server.Token, f.server.Revoke} {
		if err := checkSecure(endpoint, "the endpoint"); err != nil {
			return err
		}
	}
	return nil
}

// maxResponse limits a response, in bytes.
const maxResponse = 1 << 20

// fetchJSON sends a GET, or a POST of the form if there is one, and decodes the JSON response of any status into out.
func (l *Login) fetchJSON(ctx context.Context, to string, form url.Values, token string, out any) (status int, err error) {
	if err := checkSecure(to, "the server"); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Accept", "application/json")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := l.Client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxResponse))
	if err != nil {
		return 0, err
	}
	_ = json.Unmarshal(b, out) // a body that is not JSON leaves out empty
	return answer.StatusCode, nil
}

// Param returns a parameter of a WWW-Authenticate header, or "" if it is missing.
func Param(challenge, name string) string {
	m := regexp.MustCompile(`[ ,]` + regexp.QuoteMeta(name) + `="([^"]*)"`).FindStringSubmatch(challenge)
	if m == nil {
		return ""
	}
	return m[1]
}

// checkSecure returns an error for an address to which secrets must not be sent, because it is neither https nor on
// this machine.
func checkSecure(text, what string) error {
	u, err := url.Parse(text)
	if err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())) {
		return nil
	}
	return fmt.Errorf("%s %q is neither https nor on this machine", what, text)
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// sameAddress compares addresses of a server. All names of the loopback interface are equal.
func sameAddress(a, b string) bool {
	x, err1 := url.Parse(a)
	y, err2 := url.Parse(b)
	if err1 != nil || err2 != nil || x.Scheme != y.Scheme || x.Port() != y.Port() ||
		strings.TrimRight(x.Path, "/") != strings.TrimRight(y.Path, "/") {
		return false
	}
	return strings.EqualFold(x.Hostname(), y.Hostname()) || loopback(x.Hostname()) && loopback(y.Hostname())
}
