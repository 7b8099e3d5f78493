package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// AuthorizationRequest is a checked authorization request.
type AuthorizationRequest struct {
	Client   Client
	Redirect string
	Scopes   []access.Scope
	Audience Audiences
	Again    bool // ask the user even if there is an earlier consent

	challenge, state string
}

// Host returns the host of the redirect URI, or the scheme and the host of an app.
func (a AuthorizationRequest) Host() string { return RedirectTarget(a.Redirect) }

// OnOwnMachine reports whether the response goes to the user's own machine. Any program on that machine could receive
// it.
func (a AuthorizationRequest) OnOwnMachine() bool {
	return IsLoopback(a.Redirect) || isPrivateScheme(a.Redirect)
}

// ResourceOwner is the user who is asked for consent.
type ResourceOwner struct {
	Org    org.Organization
	UserID string
	Role   string
}

// challengeForm is the form of an S256 code challenge: 32 bytes in base64url (RFC 7636 §4.2).
var challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// ParseAuthorizationRequest checks an authorization request. If the client or its redirect URI is invalid, redirect
// is "" and the browser must not be redirected (RFC 6749 §4.1.2.1). Other errors are reported to the client by a
// redirect to the returned URL. Errors are *OAuthError.
func (o *OAuth) ParseAuthorizationRequest(ctx context.Context, q url.Values) (a AuthorizationRequest, redirect string, err error) {
	if err := checkSingleValues(q); err != nil {
		return a, "", err
	}
	if a.Client, err = o.client(ctx, q.Get("client_id")); err != nil {
		return a, "", err
	}
	if a.Redirect = q.Get("redirect_uri"); a.Redirect == "" && a.Client.Origin != BuiltIn && len(a.Client.Redirects) == 1 {
		a.Redirect = a.Client.Redirects[0]
	}
	if !a.Client.allowsRedirect(a.Redirect) {
		return a, "", oauthError("invalid_request", "redirect_uri is none of this client's")
	}
	a.state = q.Get("state")
	if err := o.parseParameters(&a, q); err != nil {
		return a, o.errorRedirect(a, err), err
	}
	return a, "", nil
}

// parseParameters checks the parameters whose errors are reported to the redirect URI.
func (o *OAuth) parseParameters(a *AuthorizationRequest, q url.Values) (err error) {
	a.challenge = q.Get("code_challenge")
	switch {
	case len(a.state) > 2000:
		a.state = ""
		return oauthError("invalid_request", "state is too long")
	case q.Get("response_type") != "code":
		return oauthError("unsupported_response_type", "response_type must be code")
	case q.Get("response_mode") != "" && q.Get("response_mode") != "query":
		return oauthError("invalid_request", "response_mode must be query")
	case q.Get("code_challenge_method") != "S256":
		return oauthError("invalid_request", "code_challenge_method must be S256 (PKCE)")
	case !challengeForm.MatchString(a.challenge):
		return oauthError("invalid_request", "code_challenge must be that of S256 (PKCE)")
	case q.Get("prompt") == "none":
		return oauthError("consent_required", "the person must be asked")
	}
	a.Again = q.Get("prompt") == "consent"
	if a.Scopes, err = a.Client.scopes(q.Get("scope")); err != nil {
		return err
	}
	if len(q["resource"]) > 4 {
		return oauthError("invalid_target", "too many resources")
	}
	a.Audience, err = o.narrowAudience(Audiences{REST, MCP}, q["resource"])
	return err
}

// scopes parses the scopes that a client requests; without any it returns defaultScopes. Only the built-in client may
// have partner scopes. For other clients they are left out (RFC 6749 §3.3), because many clients request every scope
// in the metadata.
func (c Client) scopes(text string) ([]access.Scope, error) {
	var all []access.Scope
	refused := ""
	for word := range strings.FieldsSeq(text) {
		s := access.Scope(word)
		switch {
		case ignoresScope(word):
			continue
		case !s.Known():
			return nil, oauthError("invalid_scope", "there is no such scope; see scopes_supported")
		case s.Partner() && c.Origin != BuiltIn:
			refused = word
		case !slices.Contains(all, s):
			all = append(all, s)
		}
	}
	switch {
	case len(all) == 0 && refused != "":
		return nil, oauthError("invalid_scope", refused+" is not given to this client")
	case len(all) == 0:
		return slices.Clone(defaultScopes), nil
	}
	return slices.DeleteFunc(access.All(), func(s access.Scope) bool { return !slices.Contains(all, s) }), nil
}

// ignoresScope reports whether a word of a scope parameter has no effect (RFC 6749 §3.3): every client gets a refresh token, and a
// library for OpenID Connect asks for its scopes at every server. The token response lists the granted scopes.
func ignoresScope(word string) bool {
	return slices.Contains([]string{"offline_access", "openid", "profile", "email", "address", "phone"}, word)
}

// errorRedirect returns the redirect URL that reports a failed or denied request to the client.
func (o *OAuth) errorRedirect(a AuthorizationRequest, err error) string {
	var known *OAuthError
	if !errors.As(err, &known) {
		known = oauthError("server_error", "")
	}
	return o.redirectURL(a, url.Values{"error": {known.Code}, "error_description": {known.Description}})
}

// DenyURL returns the redirect URL for a user who denies the request.
func (o *OAuth) DenyURL(a AuthorizationRequest) string {
	return o.errorRedirect(a, oauthError("access_denied", "the person did not agree"))
}

// redirectURL returns the redirect URI with a response: its parameters, the state of the request, and the issuer (RFC
// 9207).
func (o *OAuth) redirectURL(a AuthorizationRequest, answer url.Values) string {
	u, err := url.Parse(a.Redirect)
	if err != nil {
		return ""
	}
	if a.state != "" {
		answer.Set("state", a.state)
	}
	answer.Set("iss", o.Issuer())
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += answer.Encode()
	return u.String()
}

// GrantableScopes returns the requested scopes that the user may grant.
func (o *OAuth) GrantableScopes(a AuthorizationRequest, p ResourceOwner) []access.Scope {
	return access.Intersect(a.Scopes, o.keys.MaxScopes(p.Org, p.Role))
}

// HasConsent reports whether the user has granted all requested scopes to this client before. It returns false if the response goes to the
// user's own machine: any program there can name this client, so the user is always asked (RFC 8252 §8.6).
func (o *OAuth) HasConsent(ctx context.Context, a AuthorizationRequest, p ResourceOwner) (bool, error) {
	if a.Again || a.OnOwnMachine() {
		return false, nil
	}
	before, err := consentedScopes(ctx, o.keys.db.Read(ctx), p.Org.ID, p.UserID, a.Client.ID, a.Audience.String())
	if err != nil {
		return false, fmt.Errorf("read consent: %w", err)
	}
	wanted := o.GrantableScopes(a, p)
	return len(wanted) > 0 && len(wanted) == len(a.Scopes) && len(access.Intersect(wanted, before)) == len(wanted), nil
}

// IssueCode grants the chosen scopes to the client and returns the redirect URL with the code. If no scope is left,
// it returns the URL of a denial.
func (o *OAuth) IssueCode(ctx context.Context, tx db.Querier, a AuthorizationRequest, p ResourceOwner,
	scopes []access.Scope) (redirect string, err error) {
	scopes = access.Intersect(o.GrantableScopes(a, p), scopes)
	if len(scopes) == 0 {
		return o.DenyURL(a), nil
	}
	s := o.keys
	now := s.now()
	text := newSecret(s.brand + "_ac_")
	err = insertCode(ctx, tx, authorizationCode{orgID: p.Org.ID, digest: s.seal.Digest(text), userID: p.UserID, clientID: a.Client.ID,
		clientName:  a.Client.Name,
		redirectURI: a.Redirect, challenge: a.challenge, audience: a.Audience, scopes: scopes, createdAt: db.At(now),
		expiresAt: db.At(now.Add(codeLife))})
	if err != nil {
		return "", fmt.Errorf("store code: %w", err)
	}
	before, err := consentedScopes(ctx, tx, p.Org.ID, p.UserID, a.Client.ID, a.Audience.String())
	if err != nil {
		return "", fmt.Errorf("read consent: %w", err)
	}
	all := slices.DeleteFunc(access.All(), func(x access.Scope) bool { return !slices.Contains(before, x) && !slices.Contains(scopes, x) })
	if err := storeConsent(ctx, tx, p.Org.ID, p.UserID, a.Client.ID, a.Audience.String(), all, db.At(now)); err != nil {
		return "", fmt.Errorf("store consent: %w", err)
	}
	if a.Client.Origin == Registered {
		if err := setClientUsed(ctx, tx, a.Client.ID, db.At(now)); err != nil {
			return "", fmt.Errorf("store the client's last use: %w", err)
		}
	}
	return o.redirectURL(a, url.Values{"code": {text}}), nil
}
