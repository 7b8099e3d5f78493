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

// An Ask is what a program asks a person for, once it is known to be in order.
type Ask struct {
	Client   Client
	Redirect string
	Scopes   []access.Scope
	Audience Audiences
	Again    bool // the person is to be asked, whatever they agreed to before

	challenge, state string
}

// Host is where the person is led back to.
func (a Ask) Host() string {
	u, err := url.Parse(a.Redirect)
	if err != nil {
		return ""
	}
	return u.Host
}

// OnOwnMachine reports whether the answer goes to a program on the person's own machine, which any program there may be.
func (a Ask) OnOwnMachine() bool { return onOwnMachine(a.Redirect) }

// Asked is the person who is asked.
type Asked struct {
	Org    org.Organization
	UserID string
	Role   string
}

// challengeForm is the form of a code challenge of S256: 32 bytes in base64url (RFC 7636 §4.2).
var challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// Ask reads an authorization request. Where the client or its redirect address is wrong, redirect is "" and nobody must be led anywhere
// (RFC 6749 §4.1.2.1); else an error is told at that address. Errors are *Refusal.
func (o *OAuth) Ask(ctx context.Context, q url.Values) (a Ask, redirect string, err error) {
	if err := once(q); err != nil {
		return a, "", err
	}
	if a.Client, err = o.client(ctx, q.Get("client_id")); err != nil {
		return a, "", err
	}
	if a.Redirect = q.Get("redirect_uri"); a.Redirect == "" && a.Client.Origin != Known && len(a.Client.Redirects) == 1 {
		a.Redirect = a.Client.Redirects[0]
	}
	if !a.Client.leads(a.Redirect) {
		return a, "", refuse("invalid_request", "redirect_uri is none of this client's")
	}
	a.state = q.Get("state")
	if err := o.read(&a, q); err != nil {
		return a, o.failed(a, err), err
	}
	return a, "", nil
}

// read reads what is told at the redirect address where it is wrong.
func (o *OAuth) read(a *Ask, q url.Values) (err error) {
	a.challenge = q.Get("code_challenge")
	switch {
	case len(a.state) > 2000:
		a.state = ""
		return refuse("invalid_request", "state is too long")
	case q.Get("response_type") != "code":
		return refuse("unsupported_response_type", "response_type must be code")
	case q.Get("response_mode") != "" && q.Get("response_mode") != "query":
		return refuse("invalid_request", "response_mode must be query")
	case q.Get("code_challenge_method") != "S256":
		return refuse("invalid_request", "code_challenge_method must be S256 (PKCE)")
	case !challengeForm.MatchString(a.challenge):
		return refuse("invalid_request", "code_challenge must be that of S256 (PKCE)")
	case q.Get("prompt") == "none":
		return refuse("consent_required", "the person must be asked")
	}
	a.Again = q.Get("prompt") == "consent"
	if a.Scopes, err = a.Client.scopes(q.Get("scope")); err != nil {
		return err
	}
	if len(q["resource"]) > 4 {
		return refuse("invalid_target", "too many resources")
	}
	a.Audience, err = o.narrow(Audiences{REST, MCP}, q["resource"])
	return err
}

// scopes reads the scopes a client asks for; some that only read where it names none. Partner scopes are for the known client alone: of what
// others ask for they are left out (RFC 6749 §3.3), as many ask for all that metadata names.
func (c Client) scopes(text string) ([]access.Scope, error) {
	var all []access.Scope
	refused := ""
	for word := range strings.FieldsSeq(text) {
		s := access.Scope(word)
		switch {
		case word == "offline_access": // every client is given a refresh token
			continue
		case !s.Known():
			return nil, refuse("invalid_scope", "there is no such scope; see scopes_supported")
		case s.Partner() && c.Origin != Known:
			refused = word
		case !slices.Contains(all, s):
			all = append(all, s)
		}
	}
	switch {
	case len(all) == 0 && refused != "":
		return nil, refuse("invalid_scope", refused+" is not given to this client")
	case len(all) == 0:
		return slices.Clone(offered), nil
	}
	return slices.DeleteFunc(access.All(), func(s access.Scope) bool { return !slices.Contains(all, s) }), nil
}

// failed is where a program is told that its request failed, or was denied.
func (o *OAuth) failed(a Ask, err error) string {
	var known *Refusal
	if !errors.As(err, &known) {
		known = refuse("server_error", "")
	}
	return o.back(a, url.Values{"error": {known.Code}, "error_description": {known.Description}})
}

// Deny is where the person is led who does not want it.
func (o *OAuth) Deny(a Ask) string {
	return o.failed(a, refuse("access_denied", "the person did not agree"))
}

// back is the redirect address with an answer: with the state of the request and who answers (RFC 9207).
func (o *OAuth) back(a Ask, answer url.Values) string {
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

// Grantable are the scopes of an ask that the person may give.
func (o *OAuth) Grantable(a Ask, p Asked) []access.Scope {
	return access.Among(a.Scopes, o.keys.Ceiling(p.Org, p.Role))
}

// Agreed reports whether the person agreed to all of it before, and with which scopes.
func (o *OAuth) Agreed(ctx context.Context, a Ask, p Asked) (bool, error) {
	if a.Again {
		return false, nil
	}
	before, err := consented(ctx, o.keys.db.Read(ctx), p.Org.ID, p.UserID, a.Client.ID, a.Audience.String())
	if err != nil {
		return false, fmt.Errorf("read consent: %w", err)
	}
	wanted := o.Grantable(a, p)
	return len(wanted) > 0 && len(wanted) == len(a.Scopes) && len(access.Among(wanted, before)) == len(wanted), nil
}

// Agree gives the client the scopes that are left of an ask, as a code at its redirect address. The error is a *Refusal where
// nothing is left.
func (o *OAuth) Agree(ctx context.Context, tx db.Querier, a Ask, p Asked, scopes []access.Scope) (redirect string, err error) {
	scopes = access.Among(o.Grantable(a, p), scopes)
	if len(scopes) == 0 {
		return o.Deny(a), nil
	}
	s := o.keys
	now := s.now()
	text := newSecret(s.brand + "_ac_")
	err = insertCode(ctx, tx, code{orgID: p.Org.ID, digest: s.seal.Digest(text), userID: p.UserID, clientID: a.Client.ID, clientName: a.Client.Name,
		redirectURI: a.Redirect, challenge: a.challenge, audience: a.Audience, scopes: scopes, createdAt: db.At(now), expiresAt: db.At(now.Add(codeLife))})
	if err != nil {
		return "", fmt.Errorf("keep code: %w", err)
	}
	before, err := consented(ctx, tx, p.Org.ID, p.UserID, a.Client.ID, a.Audience.String())
	if err != nil {
		return "", fmt.Errorf("read consent: %w", err)
	}
	all := slices.DeleteFunc(access.All(), func(x access.Scope) bool { return !slices.Contains(before, x) && !slices.Contains(scopes, x) })
	if err := keepConsent(ctx, tx, p.Org.ID, p.UserID, a.Client.ID, a.Audience.String(), all, db.At(now)); err != nil {
		return "", fmt.Errorf("keep consent: %w", err)
	}
	if a.Client.Origin == Registered {
		if err := touchClient(ctx, tx, a.Client.ID, db.At(now)); err != nil {
			return "", fmt.Errorf("note the client's use: %w", err)
		}
	}
	return o.back(a, url.Values{"code": {text}}), nil
}
