package crm

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

// vendorConnection is the configuration of a connection to a vendor, built from its settings.
type vendorConnection struct {
	app               App
	static            *credentials   // credentials without consent; nil: a person gives consent, or the app acts for itself
	clientCredentials bool           // client credentials grant: the app acts for itself (RFC 6749 §4.4)
	endpoints         oauthEndpoints // used if static is nil
	base              string         // of the API, unless a token response contains another
	scheme            string         // of the Authorization header; "" for Bearer
	// onToken reads the vendor's extra data of a token response: address of the API, account. nil: none.
	onToken func(g *grant, t *oauth2.Token, q url.Values) error
	// tokenServer reads the address of the token server from the parameters of the redirect. nil: always the
	// configured one.
	tokenServer func(q url.Values) string
	// endpointsFor returns the endpoints for a grant. nil: always endpoints.
	endpointsFor func(g grant) oauthEndpoints
	// classifyError maps an error answer in the way of this vendor. nil, or a nil result: the common mapping.
	classifyError func(status int, h http.Header, body []byte) error
	rateLimits    []rateLimit
	newAdapter    func(a *vendorClient) Adapter
}

// requiresConsent reports whether a person must give consent.
func (d vendorConnection) requiresConsent() bool { return d.static == nil && !d.clientCredentials }

// vendorDecoder decodes the settings of a connection.
type vendorDecoder func(raw json.RawMessage) (vendorConnection, []op.Violation)

// decodeVendor returns a decoder for the settings type of a vendor.
func decodeVendor[T any](make func(T) (vendorConnection, []op.Violation)) vendorDecoder {
	return func(raw json.RawMessage) (vendorConnection, []op.Violation) {
		var x T
		if wrong := decodeStrict(raw, &x); wrong != nil {
			return vendorConnection{}, wrong
		}
		return make(x)
	}
}

// adapterOf checks settings and builds the adapter of a connection.
func (p provider) adapterOf(s *Service, c Connection, raw json.RawMessage) (Adapter, []op.Violation) {
	if p.decode == nil {
		return p.build(s, raw, c.FieldMap)
	}
	d, wrong := p.decode(raw)
	if len(c.FieldMap) > 0 {
		wrong = append(wrong, op.Field("field_map", "unknown_field", "this provider's fields are known"))
	}
	if wrong = append(wrong, d.check(s, p)...); len(wrong) > 0 {
		return nil, wrong
	}
	return d.newAdapter(s.newVendorClient(c, p, d)), nil
}

// isAvailable reports whether connections of a provider can be made.
func (p provider) isAvailable() bool { return p.build != nil || p.decode != nil }

// check returns the violations of credentials and addresses. The operator's secrets are never sent to an address that
// the customer configured.
func (d vendorConnection) check(s *Service, p provider) (wrong []op.Violation) {
	own := d.static != nil || d.app.ClientID != ""
	for name, address := range map[string]string{"login_url": d.app.LoginURL, "api_url": d.app.APIURL} {
		if address == "" {
			continue
		}
		if err := s.Guard.Check(address); err != nil {
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
	if _, there := s.Apps[p.name]; d.app.ClientID == "" && !there {
		wrong = append(wrong, op.Field("settings.client_id", "required", "the operator has set up no app for "+p.title+
			": give client_id and client_secret of one of your own, or a token"))
	}
	return wrong
}

// client returns the OAuth configuration for a grant.
func (d vendorConnection) client(s *Service, p provider, g grant) *oauth2.Config {
	app, at := d.app, d.endpoints
	if app.ClientID == "" {
		app = s.Apps[p.name]
	}
	if d.endpointsFor != nil {
		at = d.endpointsFor(g)
	}
	return &oauth2.Config{ClientID: app.ClientID, ClientSecret: app.ClientSecret, Scopes: at.scopes, RedirectURL: s.BaseURL + CallbackPath,
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

// credentials are the header and the base address of API requests.
type credentials struct {
	header, value string // "Authorization: Bearer …"
	base          string // of the API
	account       string // of the vendor, if it is returned
	token         string
}

func bearer(base, token string) *credentials {
	return &credentials{header: "Authorization", value: "Bearer " + token, base: base, token: token}
}

// credentialSource supplies credentials.
type credentialSource interface {
	// credentials returns the credentials for a request. refused is the token that the vendor has just refused, or
	// "".
	credentials(ctx context.Context, refused string) (credentials, error)
}

type fixedCredentials struct{ c credentials }

func (f fixedCredentials) credentials(_ context.Context, refused string) (credentials, error) {
	if refused != "" {
		return credentials{}, ErrAuth
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

// loginOf returns the token server from the parameters of the redirect; "" if the vendor sends none.
func (d vendorConnection) loginOf(q url.Values) string {
	if d.tokenServer == nil {
		return ""
	}
	return d.tokenServer(q)
}
