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

// An App is what a vendor knows a program by that people may let act for them.
type App struct {
	ClientID     string `json:"client_id,omitempty" doc:"Of an app of your own; the operator's unless given"`
	ClientSecret string `json:"client_secret,omitempty" doc:"Of an app of your own; secret"`
	LoginURL     string `json:"login_url,omitempty" doc:"Where people agree and tokens are given, where that is not the vendor's usual address; only with a client_id of your own"`
	APIURL       string `json:"api_url,omitempty" doc:"Where the API is, where that is not the vendor's usual address; only with credentials of your own"`
}

// A door is where a vendor lets programs in.
type door struct {
	authorize, token string
	revoke           string // "" where tokens cannot be taken back
	scopes           []string
	style            oauth2.AuthStyle
	pkce             bool // the vendor documents RFC 7636
	more             []oauth2.AuthCodeOption
}

// A deal is a connection to a vendor as its settings describe it.
type deal struct {
	app    App
	fixed  *key   // credentials that need nobody's agreement; nil: people agree, or the app acts for itself
	alone  bool   // the app acts for itself (RFC 6749 §4.4)
	door   door   // where fixed is nil
	base   string // of the API, unless a token tells another
	scheme string // of the Authorization header; "" for Bearer
	// learn reads what a vendor tells beside a token: where its API is, and of which account; may be nil.
	learn func(g *grant, t *oauth2.Token, q url.Values) error
	// login reads where tokens are given from what somebody comes back with; may be nil.
	login func(q url.Values) string
	// doorOf is the door for what was learnt; nil where it stays.
	doorOf func(g grant) door
	// verdict reads answers that are no success as the vendor means them; nil: as all do.
	verdict func(status int, h http.Header, body []byte) error
	pace    []pace
	adapter func(a *api) Adapter
}

// agreed reports whether people have to agree.
func (d deal) agreed() bool { return d.fixed == nil && !d.alone }

// A vendor reads the settings of a connection.
type vendor func(raw json.RawMessage) (deal, []op.Violation)

// kept reads settings of a vendor as its own type.
func kept[T any](make func(T) (deal, []op.Violation)) vendor {
	return func(raw json.RawMessage) (deal, []op.Violation) {
		var x T
		if wrong := strict(raw, &x); wrong != nil {
			return deal{}, wrong
		}
		return make(x)
	}
}

// adapterOf checks settings and makes an adapter of a connection.
func (p provider) adapterOf(s *Service, c Connection, raw json.RawMessage) (Adapter, []op.Violation) {
	if p.vendor == nil {
		return p.build(s, raw, c.FieldMap)
	}
	d, wrong := p.vendor(raw)
	if len(c.FieldMap) > 0 {
		wrong = append(wrong, op.Field("field_map", "unknown_field", "this provider's fields are known"))
	}
	if wrong = append(wrong, d.check(s, p)...); len(wrong) > 0 {
		return nil, wrong
	}
	return d.adapter(s.api(c, p, d)), nil
}

// made reports whether connections of a provider can be made.
func (p provider) made() bool { return p.build != nil || p.vendor != nil }

// check lists what is wrong with credentials and addresses. An address of the customer's is told no secret of the operator's.
func (d deal) check(s *Service, p provider) (wrong []op.Violation) {
	own := d.fixed != nil || d.app.ClientID != ""
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
	if d.fixed != nil {
		return wrong
	}
	if (d.app.ClientID == "") != (d.app.ClientSecret == "") || d.alone && !own {
		wrong = append(wrong, op.Field("settings.client_secret", "required", "client_id and client_secret belong together"))
	}
	if _, there := s.Apps[p.name]; d.app.ClientID == "" && !there {
		wrong = append(wrong, op.Field("settings.client_id", "required", "the operator has set up no app for "+p.title+
			": give client_id and client_secret of one of your own, or a token"))
	}
	return wrong
}

// client is the app as the vendor knows it.
func (d deal) client(s *Service, p provider, g grant) *oauth2.Config {
	app, at := d.app, d.door
	if app.ClientID == "" {
		app = s.Apps[p.name]
	}
	if d.doorOf != nil {
		at = d.doorOf(g)
	}
	return &oauth2.Config{ClientID: app.ClientID, ClientSecret: app.ClientSecret, Scopes: at.scopes, RedirectURL: s.BaseURL + CallbackPath,
		Endpoint: oauth2.Endpoint{AuthURL: at.authorize, TokenURL: at.token, AuthStyle: at.style}}
}

// or is the first text that is not empty, without a slash at its end.
func or(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return strings.TrimRight(t, "/")
		}
	}
	return ""
}

// A key is what requests are dressed with, and where they go.
type key struct {
	header, value string // "Authorization: Bearer …"
	base          string // of the API
	account       string // of the vendor, where it tells
	token         string
}

func bearer(base, token string) *key {
	return &key{header: "Authorization", value: "Bearer " + token, base: base, token: token}
}

// A keyring has keys.
type keyring interface {
	// key gives what to dress requests with. refused is the token that the vendor has just refused; "" where it has not.
	key(ctx context.Context, refused string) (key, error)
}

type fixedKey struct{ k key }

func (f fixedKey) key(_ context.Context, refused string) (key, error) {
	if refused != "" {
		return key{}, ErrAuth
	}
	return f.k, nil
}

// errUnfit says that a vendor's record is not whom it was asked for.
var errUnfit = errors.New("nobody fits")

// known finds the record of a contact that is to be written, so that it is not written twice: by its e-mail address, or by its number
// and its name.
func (a *api) known(ctx context.Context, f Finder, c contact.Contact) (string, error) {
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
		id, err := a.named(ctx, f, p.Number, c.Name)
		if !errors.Is(err, errUnfit) {
			return id, err
		}
	}
	return "", nil
}

func (a *api) named(ctx context.Context, f Finder, number, name string) (string, error) {
	q, err := a.contacts.Query(ctx, a.org, number)
	if err != nil {
		return "", errUnfit // no whole number
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
	return "", errUnfit
}

// loginOf is where a vendor says that tokens are given to whoever comes back; "" where it does not.
func (d deal) loginOf(q url.Values) string {
	if d.login == nil {
		return ""
	}
	return d.login(q)
}
