package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/op"
)

// App is an OAuth client as registered with a vendor (RFC 6749 §2).
type App struct {
	ClientID     string `json:"client_id,omitempty" doc:"Of an app of your own; the operator's unless given"`
	ClientSecret string `json:"client_secret,omitempty" doc:"Of an app of your own; secret"`
	LoginURL     string `json:"login_url,omitempty" doc:"Where people agree and tokens are given, where that is not the vendor's usual address; only with a client_id of your own"`
	APIURL       string `json:"api_url,omitempty" doc:"Where the API is, where that is not the vendor's usual address; only with credentials of your own"`
}

// oauthEndpoints are the authorization, token and revocation endpoints of a vendor.
type oauthEndpoints struct {
	authorize, token string
	revoke           string // "" if tokens cannot be revoked
	scopes           []string
	style            oauth2.AuthStyle
	pkce             bool // the vendor documents PKCE (RFC 7636)
	authParams       []oauth2.AuthCodeOption
}

// VendorConnection is the configuration of a connection to a vendor, built from its settings.
type VendorConnection struct {
	app               App
	static            *Credentials   // credentials without consent; nil: a person gives consent, or the app acts for itself
	clientCredentials bool           // client credentials grant: the app acts for itself (RFC 6749 §4.4)
	endpoints         oauthEndpoints // used if static is nil
	base              string         // of the API, unless a token response contains another
	scheme            string         // of the Authorization header; "" for Bearer
	// onToken reads the vendor's extra data of a token response: address of the API, account. nil: none.
	onToken func(g *Grant, t *oauth2.Token, q url.Values) error
	// tokenServer reads the address of the token server from the parameters of the redirect. nil: always the
	// configured one.
	tokenServer func(q url.Values) string
	// endpointsFor returns the endpoints for a grant. nil: always endpoints.
	endpointsFor func(g Grant) oauthEndpoints
	// classifyError maps an error answer in the way of this vendor. nil, or a nil result: the common mapping.
	classifyError func(status int, h http.Header, body []byte) error
	rateLimits    []rateLimit
	newAdapter    func(a *vendorClient) Adapter
}

// RequiresConsent reports whether a person must give consent.
func (d VendorConnection) RequiresConsent() bool { return d.static == nil && !d.clientCredentials }

// vendorDecoder decodes the settings of a connection.
type vendorDecoder func(raw json.RawMessage) (VendorConnection, []op.Violation)

// decodeVendor returns a decoder for the settings type of a vendor.
func decodeVendor[T any](make func(T) (VendorConnection, []op.Violation)) vendorDecoder {
	return func(raw json.RawMessage) (VendorConnection, []op.Violation) {
		var x T
		if wrong := op.DecodeSettings(raw, &x); wrong != nil {
			return VendorConnection{}, wrong
		}
		return make(x)
	}
}

// Adapter checks settings and builds the adapter of an organisation's connection. tokens returns the source of its tokens
// if the settings contain no credentials.
func (p Provider) Adapter(e *Env, org string, fields map[string]string, raw json.RawMessage,
	tokens func(VendorConnection) CredentialSource) (Adapter, []op.Violation) {
	if p.decode == nil {
		return p.build(e, raw, fields)
	}
	d, wrong := p.decode(raw)
	if len(fields) > 0 {
		wrong = append(wrong, op.Field("field_map", "unknown_field", "this provider's fields are known"))
	}
	if wrong = append(wrong, d.check(e, p)...); len(wrong) > 0 {
		return nil, wrong
	}
	if d.static != nil {
		tokens = func(VendorConnection) CredentialSource { return fixedCredentials{*d.static} }
	}
	return d.newAdapter(e.newVendorClient(org, d, tokens(d))), nil
}

// Vendor decodes settings of a connection to a vendor. It returns false for other providers and for invalid settings.
func (p Provider) Vendor(e *Env, raw json.RawMessage) (VendorConnection, bool) {
	if p.decode == nil {
		return VendorConnection{}, false
	}
	d, wrong := p.decode(raw)
	return d, len(append(wrong, d.check(e, p)...)) == 0
}

// IsAvailable reports whether connections of a provider can be made.
func (p Provider) IsAvailable() bool { return p.build != nil || p.decode != nil }

// check returns the violations of credentials and addresses. The operator's secrets are never sent to an address that
// the customer configured.
func (d VendorConnection) check(e *Env, p Provider) (wrong []op.Violation) {
	own := d.static != nil || d.app.ClientID != ""
	for name, address := range map[string]string{"login_url": d.app.LoginURL, "api_url": d.app.APIURL} {
		if address == "" {
			continue
		}
		if err := e.Guard.Check(address); err != nil {
			wrong = append(wrong, op.Field("settings."+name, "invalid_url", err.Error()))
		}
		if !own {
			wrong = append(wrong, op.Field("settings."+name, "not_available", "needs a client_id and client_secret of your own"))
		}
	}
	if d.static != nil {
		return wrong
	}
	if (d.app.ClientID == "") != (d.app.ClientSecret == "") || d.clientCredentials && !own {
		wrong = append(wrong, op.Field("settings.client_secret", "required", "client_id and client_secret belong together"))
	}
	if _, there := e.Apps[p.Name]; d.app.ClientID == "" && !there {
		wrong = append(wrong, op.Field("settings.client_id", "required", "the operator has set up no app for "+p.Title+
			": give client_id and client_secret of one of your own, or a token"))
	}
	return wrong
}

// OAuthClient returns the OAuth configuration for a grant.
func (d VendorConnection) OAuthClient(e *Env, p Provider, g Grant) *oauth2.Config {
	app, at := d.app, d.endpointsOf(g)
	if app.ClientID == "" {
		app = e.Apps[p.Name]
	}
	return &oauth2.Config{ClientID: app.ClientID, ClientSecret: app.ClientSecret, Scopes: at.scopes, RedirectURL: e.RedirectURL,
		Endpoint: oauth2.Endpoint{AuthURL: at.authorize, TokenURL: at.token, AuthStyle: at.style}}
}

// firstNonEmpty returns the first text that is not empty, without a trailing slash.
func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return strings.TrimRight(t, "/")
		}
	}
	return ""
}

// Credentials are the header and the base address of API requests.
type Credentials struct {
	header, value string // "Authorization: Bearer …"
	base          string // of the API
	account       string // of the vendor, if it is returned
	token         string
}

func bearer(base, token string) *Credentials {
	return &Credentials{header: "Authorization", value: "Bearer " + token, base: base, token: token}
}

// CredentialSource supplies credentials.
type CredentialSource interface {
	// Credentials returns the credentials for a request. refused is the token that the vendor has just refused, or
	// "".
	Credentials(ctx context.Context, refused string) (Credentials, error)
}

type fixedCredentials struct{ c Credentials }

// Credentials returns the configured credentials. A refused token cannot be replaced.
func (f fixedCredentials) Credentials(_ context.Context, refused string) (Credentials, error) {
	if refused != "" {
		return Credentials{}, ErrAuth
	}
	return f.c, nil
}

// errNoMatch means that no record has the number and the name.
var errNoMatch = errors.New("no record matches")

// findExisting finds the record of a contact before a new one is created: by e-mail address, or by number and name.
func (a *vendorClient) findExisting(ctx context.Context, f Searcher, c contact.Contact) (string, error) {
	for _, e := range c.Emails {
		found, err := f.Lookup(ctx, contact.Query{Email: strings.ToLower(e.Value)})
		if err != nil {
			return "", err
		}
		for _, r := range found {
			if strings.EqualFold(r.Email, e.Value) {
				return r.ExternalID, nil
			}
		}
	}
	for _, p := range c.Phones {
		id, err := a.findByName(ctx, f, p.Number, c.Name)
		if !errors.Is(err, errNoMatch) {
			return id, err
		}
	}
	return "", nil
}

func (a *vendorClient) findByName(ctx context.Context, f Searcher, number, name string) (string, error) {
	q, err := a.contacts.Query(ctx, a.org, number)
	if err != nil {
		return "", errNoMatch // not a complete number
	}
	found, err := f.Lookup(ctx, q)
	if err != nil {
		return "", err
	}
	for _, r := range found {
		if strings.EqualFold(r.Name, name) && a.contacts.Fits(q, r) {
			return r.ExternalID, nil
		}
	}
	return "", errNoMatch
}

// LoginOf returns the token server from the parameters of the redirect; "" if the vendor sends none.
func (d VendorConnection) LoginOf(q url.Values) string {
	if d.tokenServer == nil {
		return ""
	}
	return d.tokenServer(q)
}
