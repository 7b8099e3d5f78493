package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// OAuthError is an OAuth error with its code (RFC 6749 §5.2).
type OAuthError struct {
	Code, Description string
	commit            bool // the transaction is committed in spite of the error
}

// Error implements error.
func (r *OAuthError) Error() string { return r.Code + ": " + r.Description }

func oauthError(code, description string) *OAuthError {
	return &OAuthError{Code: code, Description: description}
}

// tokens is the response of the token endpoint (RFC 6749 §5.1).
type tokens struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"`
	Refresh string `json:"refresh_token"`
	Scope   string `json:"scope"`
}

// token is the token endpoint.
func (o *OAuth) token(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	form, err := o.form(r)
	var out tokens
	if err == nil {
		out, err = o.exchange(r.Context(), form)
	}
	if err != nil {
		o.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// form parses a posted form. Each parameter may occur once (RFC 6749 §3.2), except resource (RFC 8707 §2).
func (o *OAuth) form(r *http.Request) (url.Values, error) {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind),
		"application/x-www-form-urlencoded") {
		return nil, oauthError("invalid_request", "send application/x-www-form-urlencoded")
	}
	if err := r.ParseForm(); err != nil {
		return nil, oauthError("invalid_request", "the form cannot be read")
	}
	return r.PostForm, checkSingleValues(r.PostForm)
}

func checkSingleValues(form url.Values) error {
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			return oauthError("invalid_request", name+" is given more than once")
		}
	}
	return nil
}

// writeError writes an OAuth error. Any other error is logged and reported as server_error.
func (o *OAuth) writeError(w http.ResponseWriter, r *http.Request, err error) {
	var known *OAuthError
	if !errors.As(err, &known) {
		o.cfg.Log.Error("OAuth request failed", "path", r.URL.Path, "request", op.RequestID(r.Context()), "err", err)
		writeJSON(w, http.StatusInternalServerError, map[string]string{"error": "server_error",
			"error_description": "request " + op.RequestID(r.Context())})
		return
	}
	status := map[string]int{"invalid_client": http.StatusUnauthorized, "invalid_token": http.StatusUnauthorized,
		"slow_down": http.StatusTooManyRequests}[known.Code]
	if status == 0 {
		status = http.StatusBadRequest
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("Www-Authenticate", `Bearer error="`+known.Code+`"`)
	}
	writeJSON(w, status, map[string]string{"error": known.Code, "error_description": known.Description})
}

func (o *OAuth) exchange(ctx context.Context, form url.Values) (tokens, error) {
	if form.Get("client_id") == "" {
		return tokens{}, oauthError("invalid_client", "send client_id in the form; clients have no secret here")
	}
	switch form.Get("grant_type") {
	case "authorization_code":
		return o.transact(ctx, form, o.redeem)
	case "refresh_token":
		return o.transact(ctx, form, o.refresh)
	case "":
		return tokens{}, oauthError("invalid_request", "grant_type is missing")
	}
	return tokens{}, oauthError("unsupported_grant_type", "there are authorization_code and refresh_token")
}

// transact runs an exchange in one transaction. The transaction is committed for errors with commit set: a replayed
// code revokes its grant.
func (o *OAuth) transact(ctx context.Context, form url.Values, do func(context.Context, db.Querier, url.Values) (tokens,
	error)) (out tokens, err error) {
	var kept error
	err = o.keys.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		var known *OAuthError
		if out, err = do(ctx, tx, form); errors.As(err, &known) && known.commit {
			kept = err
			return nil
		}
		return err
	})
	if err == nil {
		err = kept
	}
	return out, err
}

// redeem exchanges a code for tokens, once. If a code is used again, a third party may have it: its grant is revoked.
func (o *OAuth) redeem(ctx context.Context, tx db.Querier, form url.Values) (tokens, error) {
	c, err := codeByDigest(ctx, tx, o.keys.seal.Digest(form.Get("code")))
	if db.IsNone(err) {
		return tokens{}, oauthError("invalid_grant", "this code is not known")
	}
	if err != nil {
		return tokens{}, err
	}
	if c.grantID != "" {
		return tokens{}, o.revokeReplayed(ctx, tx, c.orgID, c.grantID, "this code was used already")
	}
	if err := o.checkCode(c, form); err != nil {
		return tokens{}, err
	}
	audience, err := o.narrowAudience(c.audience, form["resource"])
	if err != nil {
		return tokens{}, err
	}
	g := Grant{ID: db.NewID("gra"), UserID: c.userID, ClientID: c.clientID, ClientName: c.clientName, Audience: c.audience,
		Scopes: c.scopes, CreatedAt: db.At(o.keys.now()), orgID: c.orgID}
	won, err := markCodeUsed(ctx, tx, c.orgID, c.digest, g.ID)
	if err != nil {
		return tokens{}, err
	}
	if !won { // another request was first, between the read and the write
		if c, err = codeByDigest(ctx, tx, c.digest); err != nil {
			return tokens{}, err
		}
		return tokens{}, o.revokeReplayed(ctx, tx, c.orgID, c.grantID, "this code was used already")
	}
	if err := insertGrant(ctx, tx, g); err != nil {
		return tokens{}, err
	}
	return o.issueTokens(ctx, tx, g, audience, c.scopes)
}

func (o *OAuth) checkCode(c authorizationCode, form url.Values) error {
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	sent, given := form["redirect_uri"]
	switch {
	case c.clientID != form.Get("client_id"):
		return oauthError("invalid_grant", "this code was given to another client")
	case !o.keys.now().Before(c.expiresAt.Time):
		return oauthError("invalid_grant", "this code has expired")
	case given && sent[0] != c.redirectURI:
		return oauthError("invalid_grant", "redirect_uri is not that of the request")
	case !verifierForm.MatchString(form.Get("code_verifier")),
		subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(c.challenge)) != 1:
		return oauthError("invalid_grant", "code_verifier does not fit")
	}
	return nil
}

// verifierForm is the form of a code verifier (RFC 7636 §4.1).
var verifierForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)

func (o *OAuth) revokeReplayed(ctx context.Context, tx db.Querier, org, grant, why string) error {
	if err := o.keys.endGrant(ctx, tx, org, grant); err != nil {
		return err
	}
	return &OAuthError{"invalid_grant", why + "; what it gave was revoked", true}
}

// narrowAudience returns the audience of a token: the granted one, or the part of it that the request names.
func (o *OAuth) narrowAudience(granted Audiences, resources []string) (Audiences, error) {
	if len(resources) == 0 {
		return granted, nil
	}
	var named Audiences
	for _, r := range resources {
		a, ok := o.audienceOf(r)
		if !ok || !slices.Contains(granted, a) {
			return nil, oauthError("invalid_target", "resource is not what was granted")
		}
		if !slices.Contains(named, a) {
			named = append(named, a)
		}
	}
	return named, nil
}

// issueTokens creates an access token and a refresh token. The refresh token keeps the granted scopes and audience.
// The access token has the requested ones.
func (o *OAuth) issueTokens(ctx context.Context, tx db.Querier, g Grant, audience Audiences, scopes []access.Scope) (tokens, error) {
	s := o.keys
	now := s.now()
	out := tokens{Access: newSecret(accessPrefix(s.brand)), Refresh: newSecret(refreshPrefix(s.brand)), Type: "Bearer",
		Expires: int(accessLife / time.Second), Scope: joinScopes(scopes)}
	err := insertToken(ctx, tx, storedToken{orgID: g.orgID, digest: s.seal.Digest(out.Access), kind: "access", audience: audience,
		scopes: scopes, createdAt: db.At(now), expiresAt: db.At(now.Add(accessLife)), grant: g})
	if err != nil {
		return out, err
	}
	return out, insertToken(ctx, tx, storedToken{orgID: g.orgID, digest: s.seal.Digest(out.Refresh), kind: "refresh", audience: g.Audience,
		scopes: g.Scopes, createdAt: db.At(now), expiresAt: db.At(now.Add(refreshLife)), grant: g})
}

// refresh exchanges a refresh token for new tokens and spends it (RFC 9700 §4.14.2).
func (o *OAuth) refresh(ctx context.Context, tx db.Querier, form url.Values) (tokens, error) {
	t, err := o.refreshToken(ctx, tx, form)
	if err != nil {
		return tokens{}, err
	}
	g, now := t.grant, o.keys.now()
	if !t.spentAt.IsZero() && o.cfg.ReuseWindow <= 0 {
		return tokens{}, o.revokeReplayed(ctx, tx, t.orgID, g.ID, "this token was used already")
	}
	if _, err := o.keys.grantOrg(ctx, g); err != nil {
		return tokens{}, oauthError("invalid_grant", "what was granted is over")
	}
	if !g.stepUpUntil.IsZero() && now.Before(g.stepUpUntil.Time) {
		return tokens{}, oauthError("invalid_grant", "a scope was missing: ask the person")
	}
	if !now.Before(t.expiresAt.Time) {
		return tokens{}, oauthError("invalid_grant", "this token has expired")
	}
	audience, err := o.narrowAudience(t.audience, form["resource"])
	if err != nil {
		return tokens{}, err
	}
	scopes, err := narrowScopes(t.scopes, form.Get("scope"))
	if err != nil {
		return tokens{}, err
	}
	out, err := o.issueTokens(ctx, tx, g, audience, scopes)
	if err != nil {
		return out, err
	}
	return out, o.spend(ctx, tx, t, o.keys.seal.Digest(out.Refresh))
}

// refreshToken returns the refresh token of the request.
func (o *OAuth) refreshToken(ctx context.Context, tx db.Querier, form url.Values) (storedToken, error) {
	text := form.Get("refresh_token")
	if !isWellFormed(refreshPrefix(o.keys.brand), text) {
		return storedToken{}, oauthError("invalid_grant", "this token is not known")
	}
	t, err := tokenByDigest(ctx, tx, o.keys.seal.Digest(text))
	switch {
	case db.IsNone(err) || err == nil && t.kind != "refresh":
		return t, oauthError("invalid_grant", "this token is not known")
	case err != nil:
		return t, err
	case t.grant.ClientID != form.Get("client_id"):
		return t, oauthError("invalid_grant", "this token was given to another client")
	}
	return t, nil
}

// spend marks a refresh token as used. If it was used before, two parties have it and the grant is revoked, except
// when allowReuse permits one more use.
func (o *OAuth) spend(ctx context.Context, tx db.Querier, t storedToken, next string) error {
	now := o.keys.now()
	if t.spentAt.IsZero() {
		won, err := spendToken(ctx, tx, t.orgID, t.digest, next, db.At(now))
		if err != nil || won {
			return err
		}
	}
	if again, err := o.allowReuse(ctx, tx, t, now); err != nil || again {
		return err
	}
	return o.revokeReplayed(ctx, tx, t.orgID, t.grant.ID, "this token was used already")
}

// allowReuse reports whether a spent token may be used once more: within the reuse window, and if its replacement was
// not used.
func (o *OAuth) allowReuse(ctx context.Context, tx db.Querier, t storedToken, now time.Time) (bool, error) {
	if o.cfg.ReuseWindow <= 0 || t.spentAt.IsZero() || now.After(t.spentAt.Add(o.cfg.ReuseWindow)) {
		return false, nil
	}
	heir, err := tokenByDigest(ctx, tx, t.replacedBy)
	if db.IsNone(err) {
		return false, nil
	}
	if err != nil || !heir.spentAt.IsZero() {
		return false, err
	}
	return spendToken(ctx, tx, heir.orgID, heir.digest, heir.digest, db.At(now.Add(-2*time.Minute)))
}

// narrowScopes returns the scopes that a refresh requests: all of the granted ones, or some.
func narrowScopes(granted []access.Scope, asked string) ([]access.Scope, error) {
	var all []access.Scope
	for word := range strings.FieldsSeq(asked) {
		s := access.Scope(word)
		if ignoresScope(word) {
			continue
		}
		if !slices.Contains(granted, s) {
			return nil, oauthError("invalid_scope", word+" was not granted")
		}
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return granted, nil
	}
	return all, nil
}
