package auth

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
	"soniq/internal/platform/strictjson"
)

// OAuth clients whose id is the URL of their metadata document (draft-ietf-oauth-client-id-metadata-document): fetch,
// check, cache.

// documentCache caches documents for documentCacheTTL.
type documentCache struct {
	mu   sync.Mutex // guards read
	byID map[string]document
}

type document struct {
	client Client
	until  time.Time
}

const (
	documentCacheTTL   = 5 * time.Minute
	maxCachedDocuments = 1000
	maxClientIDLength  = 500
)

// documentFetchLimit limits the documents that are fetched per minute for one source address.
var documentFetchLimit = access.Policy{Name: "documents", Quota: 30, Window: time.Minute}

// clientFromDocument returns the client that the document at a URL describes.
func (o *OAuth) clientFromDocument(ctx context.Context, id string) (Client, error) {
	if why := badDocumentAddress(id); why != "" {
		return Client{}, oauthError("invalid_client", why)
	}
	now := o.keys.now()
	o.documents.mu.Lock()
	d, ok := o.documents.byID[id]
	o.documents.mu.Unlock()
	if ok && now.Before(d.until) {
		return d.client, nil
	}
	if o.cfg.Limiter != nil {
		if _, ok := o.cfg.Limiter.Take(op.ClientKey(op.ClientAddress(ctx)), 1, documentFetchLimit); !ok {
			return Client{}, oauthError("invalid_client", "too many descriptions of clients were asked for; wait a minute")
		}
	}
	c, err := o.fetchDocument(ctx, id)
	if err != nil {
		return c, err
	}
	o.documents.keep(id, document{c, now.Add(documentCacheTTL)})
	return c, nil
}

func (d *documentCache) keep(id string, x document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID == nil || len(d.byID) >= maxCachedDocuments {
		d.byID = map[string]document{}
	}
	d.byID[id] = x
}

// badDocumentAddress returns why a URL cannot be a client id; "" if it can.
func badDocumentAddress(id string) string {
	u, err := url.Parse(id)
	switch {
	case err != nil || len(id) > maxClientIDLength || u.Host == "":
		return "client_id is not an address"
	case u.Scheme != "https":
		return "client_id must be an https address"
	case u.User != nil || u.Fragment != "" || strings.Contains(id, "#"):
		return "client_id must have neither a user nor a fragment"
	case u.Path == "" || u.Path == "/" || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/"):
		return "client_id must have a path, without dots"
	}
	return ""
}

func (o *OAuth) fetchDocument(ctx context.Context, id string) (Client, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return Client{}, oauthError("invalid_client", "client_id is not an address")
	}
	r.Header.Set("Accept", "application/json")
	if o.cfg.Fetch == nil {
		return Client{}, oauthError("invalid_client", "descriptions of clients are not read here")
	}
	response, err := o.cfg.Fetch.Do(r)
	if err != nil {
		return Client{}, oauthError("invalid_client", "the description of the client cannot be read")
	}
	defer response.Body.Close()
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode != http.StatusOK || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return Client{}, oauthError("invalid_client", "there is no description of a client at its address")
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxDocumentSize+1))
	if err != nil || len(text) > maxDocumentSize {
		return Client{}, oauthError("invalid_client", "the description of the client cannot be read, or is too long")
	}
	return parseDocument(id, text)
}

// maxDocumentSize is the size limit of a document, in bytes.
const maxDocumentSize = 16 << 10

// parseDocument parses and checks a client metadata document.
func parseDocument(id string, text []byte) (Client, error) {
	var in struct {
		registration
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Method string `json:"token_endpoint_auth_method"`
	}
	if json.Unmarshal(text, &in) != nil {
		return Client{}, oauthError("invalid_client", "the description of the client is not JSON")
	}
	if faults := strictjson.Check(text); len(faults) > 0 {
		return Client{}, oauthError("invalid_client", "the description of the client: "+faults[0].Field+": "+faults[0].Message)
	}
	switch {
	case in.ID != id:
		return Client{}, oauthError("invalid_client", "the description is of another client")
	case in.Secret != "":
		return Client{}, oauthError("invalid_client", "a described client cannot have a secret")
	case in.Method != "" && in.Method != "none":
		return Client{}, oauthError("invalid_client", "clients have no secret here: token_endpoint_auth_method must be none")
	}
	c, err := in.registration.client()
	var known *OAuthError
	if errors.As(err, &known) {
		return c, oauthError("invalid_client", known.Description)
	}
	c.ID, c.Origin = id, Described
	if in.Name == "" {
		u, _ := url.Parse(id)
		c.Name = u.Host
	}
	return c, err
}
