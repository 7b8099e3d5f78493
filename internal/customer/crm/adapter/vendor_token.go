package adapter

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/oauth2"
)

// PermanentRefusal returns the reason if a vendor refuses a grant permanently; "" if the error may be temporary.
func PermanentRefusal(err error) string {
	var e *oauth2.RetrieveError
	if !errors.As(err, &e) {
		return ""
	}
	status := 0
	if e.Response != nil {
		status = e.Response.StatusCode
	}
	switch {
	case e.ErrorCode == "" && status != http.StatusBadRequest && status != http.StatusUnauthorized:
		return ""
	case e.ErrorCode == "temporarily_unavailable", e.ErrorCode == "server_error", e.ErrorCode == "slow_down",
		status == http.StatusTooManyRequests, status >= 500:
		return ""
	}
	why := firstNonEmpty(e.ErrorCode, fmt.Sprint(status))
	if e.ErrorDescription != "" {
		why += ": " + clip(e.ErrorDescription)
	}
	return why
}

// TokenError returns the error of a token request without the body of the answer, because it can contain tokens.
func TokenError(err error) error {
	var e *oauth2.RetrieveError
	switch {
	case !errors.As(err, &e):
		var u *url.Error
		if errors.As(err, &u) {
			return fmt.Errorf("ask for a token: %w", u.Err)
		}
		return errors.New("ask for a token: the answer cannot be read")
	case PermanentRefusal(err) != "":
		return fmt.Errorf("%w: %s", ErrAuth, PermanentRefusal(err))
	case e.Response != nil && e.Response.StatusCode == http.StatusTooManyRequests:
		return &BusyError{After: parseRetryAfter(e.Response.Header.Get("Retry-After"))}
	case e.Response != nil:
		return fmt.Errorf("ask for a token: the system answered %d", e.Response.StatusCode)
	}
	return errors.New("ask for a token: the system refuses it for now")
}

// Credentials returns the credentials of a grant.
func (d VendorConnection) Credentials(g Grant) Credentials {
	out := *bearer(firstNonEmpty(d.app.APIURL, g.Base, d.base), g.Access)
	if d.scheme != "" {
		out.value = d.scheme + " " + g.Access
	}
	out.account = g.Account
	return out
}

// ApplyToken copies a token response into the grant, including the vendor's extra data. A returned API address must
// pass the egress guard.
func (d VendorConnection) ApplyToken(e *Env, g *Grant, t *oauth2.Token, q url.Values) error {
	g.Access, g.Expires = t.AccessToken, t.Expiry
	if t.RefreshToken != "" {
		g.Refresh = t.RefreshToken
	}
	if d.onToken == nil {
		return nil
	}
	if err := d.onToken(g, t, q); err != nil {
		return err
	}
	if g.Base == "" {
		return nil
	}
	if err := e.Guard.Check(g.Base); err != nil {
		return fmt.Errorf("%w: the token response contains an API address that is not allowed: %w", ErrRefused, err)
	}
	return nil
}

// AuthorizeOptions returns the parameters of the consent page.
func (d VendorConnection) AuthorizeOptions(verifier string) []oauth2.AuthCodeOption {
	if !d.endpoints.pkce {
		return d.endpoints.authParams
	}
	return append(slices.Clone(d.endpoints.authParams), oauth2.S256ChallengeOption(verifier))
}

// ExchangeOptions returns the parameters of the exchange of a code.
func (d VendorConnection) ExchangeOptions(verifier string) []oauth2.AuthCodeOption {
	if !d.endpoints.pkce {
		return nil
	}
	return []oauth2.AuthCodeOption{oauth2.VerifierOption(verifier)}
}

// endpointsOf returns the endpoints for a grant.
func (d VendorConnection) endpointsOf(g Grant) oauthEndpoints {
	if d.endpointsFor == nil {
		return d.endpoints
	}
	return d.endpointsFor(g)
}

// Revocation returns the address at which tokens of a grant are revoked, "" if there is none, and whether the client
// authenticates in a header.
func (d VendorConnection) Revocation(g Grant) (address string, inHeader bool) {
	at := d.endpointsOf(g)
	return at.revoke, at.style == oauth2.AuthStyleInHeader
}

// ActsForItself reports whether the app requests tokens without the consent of a person (RFC 6749 §4.4).
func (d VendorConnection) ActsForItself() bool { return d.clientCredentials }
