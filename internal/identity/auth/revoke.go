package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// revoke is the revocation endpoint (RFC 7009). A refresh token is revoked with its whole grant. An unknown token
// counts as revoked.
func (o *OAuth) revoke(w http.ResponseWriter, r *http.Request) {
	form, err := o.form(r)
	if err == nil {
		err = o.keys.db.TxContext(r.Context(), func(ctx context.Context, tx db.Querier) error { return o.revokeToken(ctx, tx, form) })
	}
	if err != nil {
		o.writeError(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}

func (o *OAuth) revokeToken(ctx context.Context, tx db.Querier, form url.Values) error {
	text := form.Get("token")
	if text == "" {
		return oauthError("invalid_request", "token is missing")
	}
	t, err := o.findToken(ctx, tx, text)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if client := form.Get("client_id"); client != "" && client != t.grant.ClientID {
		return oauthError("invalid_grant", "this token was given to another client")
	}
	if t.kind == "refresh" {
		return o.keys.endGrant(ctx, tx, t.orgID, t.grant.ID)
	}
	if err := dropAccess(ctx, tx, t.orgID, t.digest); err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	return nil
}

// findToken returns a stored access or refresh token, or db.ErrNone.
func (o *OAuth) findToken(ctx context.Context, q db.Querier, text string) (storedToken, error) {
	if !isWellFormed(accessPrefix(o.keys.brand), text) && !isWellFormed(refreshPrefix(o.keys.brand), text) {
		return storedToken{}, db.ErrNone
	}
	return tokenByDigest(ctx, q, o.keys.seal.Digest(text))
}

// introspection is the response of the introspection endpoint (RFC 7662 §2.2).
type introspection struct {
	Active   bool     `json:"active"`
	Scope    string   `json:"scope,omitempty"`
	Client   string   `json:"client_id,omitempty"`
	Username string   `json:"username,omitempty"`
	Type     string   `json:"token_type,omitempty"`
	Expires  int64    `json:"exp,omitempty"`
	Issued   int64    `json:"iat,omitempty"`
	Subject  string   `json:"sub,omitempty"`
	Audience []string `json:"aud,omitempty"`
	Issuer   string   `json:"iss,omitempty"`
	Org      string   `json:"org_id,omitempty"`
}

// introspect returns the state of tokens of an organisation. The request needs a credential of that organisation with
// users:admin, or the token itself as the credential.
func (o *OAuth) introspect(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	form, err := o.form(r)
	if err != nil {
		o.writeError(w, r, err)
		return
	}
	text, _ := access.Bearer(r)
	p, err := o.verifyAnyAudience(r.Context(), text)
	if err != nil {
		o.writeError(w, r, err)
		return
	}
	out := introspection{}
	if t, err := o.findToken(r.Context(), o.keys.db.Read(r.Context()), form.Get("token")); err == nil && t.orgID == p.OrgID &&
		(access.One(access.UsersAdmin).MetBy(p.Scopes) || form.Get("token") == text) {
		out = o.introspectionOf(r.Context(), t)
	} else if err != nil && !db.IsNone(err) {
		o.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// verifyAnyAudience returns the principal of a credential for any resource.
func (o *OAuth) verifyAnyAudience(ctx context.Context, text string) (p access.Principal, err error) {
	for _, a := range []Audience{REST, MCP} {
		if p, err = o.keys.VerifyFor(ctx, text, a, access.Live, op.ClientAddress(ctx)); err == nil {
			return p, nil
		}
	}
	var known *op.Error
	if errors.As(err, &known) {
		return p, oauthError("invalid_token", "show a credential of the organisation")
	}
	return p, err
}

func (o *OAuth) introspectionOf(ctx context.Context, t storedToken) introspection {
	standing, err := o.keys.grantOrg(ctx, t.grant)
	if err != nil || !t.spentAt.IsZero() || !o.keys.now().Before(t.expiresAt.Time) {
		return introspection{}
	}
	out := introspection{Active: true, Scope: joinScopes(access.Intersect(t.scopes, o.keys.MaxScopes(standing, t.grant.role))),
		Client:  t.grant.ClientID,
		Expires: t.expiresAt.Unix(), Issued: t.createdAt.Unix(), Subject: t.grant.UserID, Issuer: o.Issuer(), Org: t.orgID}
	if t.kind == "access" {
		out.Type = "Bearer"
	}
	for _, a := range t.audience {
		out.Audience = append(out.Audience, o.cfg.BaseURL+map[Audience]string{REST: "", MCP: toolPaths[0]}[a])
	}
	return out
}
