package auth

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
	"soniq/internal/platform/strictjson"
)

// registration is the client metadata of a registration request (RFC 7591 §2). Other fields are ignored, as §2
// requires.
type registration struct {
	Name      string   `json:"client_name"`
	URI       string   `json:"client_uri"`
	Redirects []string `json:"redirect_uris"`
	Grants    []string `json:"grant_types"`
}

// registrationResponse is the response (RFC 7591 §3.2.1).
type registrationResponse struct {
	ID            string   `json:"client_id"`
	IssuedAt      int64    `json:"client_id_issued_at"`
	Name          string   `json:"client_name"`
	URI           string   `json:"client_uri,omitempty"`
	Redirects     []string `json:"redirect_uris"`
	Grants        []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	Method        string   `json:"token_endpoint_auth_method"`
}

// registrationLimit limits registrations per source address; the constants limit their size.
var registrationLimit = access.Policy{Name: "registrations", Quota: 100, Window: time.Hour}

const (
	maxRedirects   = 10
	maxNameLength  = 80
	clientLife     = 30 * 24 * time.Hour // since the last use
	clientIDLength = 24
)

func (o *OAuth) register(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if o.cfg.Limiter != nil {
		if _, ok := o.cfg.Limiter.Take(op.ClientKey(op.ClientAddress(r.Context())), 1, registrationLimit); !ok {
			w.Header().Set("Retry-After", "3600")
			o.writeError(w, r, oauthError("slow_down", "too many registrations from this address"))
			return
		}
	}
	var in registration
	if err := in.decode(r.Body); err != nil {
		o.writeError(w, r, err)
		return
	}
	c, err := in.client()
	if err == nil {
		c.ID = "client_" + seal.Random(clientIDLength)
		now := db.At(o.keys.now())
		err = o.keys.db.Tx(r.Context(), func(tx db.Querier) error { return insertClient(r.Context(), tx, c, now) })
	}
	if err != nil {
		o.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusCreated, registrationResponse{c.ID, o.keys.now().Unix(), c.Name, c.URI, c.Redirects,
		[]string{"authorization_code", "refresh_token"}, []string{"code"}, "none"})
}

// decode reads the metadata. Unknown members are ignored (RFC 7591 §2). A member that differs from a known one only in
// case is refused, because decoders read it in different ways.
func (in *registration) decode(body io.Reader) error {
	text, err := io.ReadAll(body)
	if err == nil {
		err = json.Unmarshal(text, in)
	}
	if err != nil {
		return oauthError("invalid_client_metadata", "the body is not a JSON object")
	}
	if faults := append(strictjson.Check(text), strictjson.Variants(text, in)...); len(faults) > 0 {
		return oauthError("invalid_client_metadata", faults[0].Field+": "+faults[0].Message)
	}
	return nil
}

// client returns the client that the metadata describes, or an *OAuthError.
func (in registration) client() (Client, error) {
	c := Client{Name: cleanName(in.Name), Redirects: in.Redirects, Origin: Registered}
	if len(in.Redirects) == 0 || len(in.Redirects) > maxRedirects {
		return c, oauthError("invalid_redirect_uri", "redirect_uris must name 1 to 10 addresses")
	}
	for _, r := range in.Redirects {
		if why := redirectFault(r); why != "" {
			return c, oauthError("invalid_redirect_uri", "the redirect address "+quoted(r)+" "+why)
		}
	}
	if strings.HasPrefix(in.URI, "https://") && len(in.URI) <= 500 {
		c.URI = in.URI
	}
	if c.Name == "" {
		c.Name = "An unnamed program"
	}
	return c, nil
}

// cleanName returns a name that is safe to display: one line, without control and bidirectional characters.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	runes := []rune(strings.Join(strings.Fields(name), " "))
	return string(runes[:min(len(runes), maxNameLength)])
}
