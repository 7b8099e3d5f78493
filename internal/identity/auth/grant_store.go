package auth

import (
	"context"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

const grantColumns = `g.org_id, g.id, g.user_id, g.client_id, g.client_name, g.audience, g.scopes, g.created_at, g.last_used_at,
	g.last_used_ip, g.revoked_at, g.step_up_until, u.role, u.status
	FROM oauth_grants g JOIN users u ON u.org_id = g.org_id AND u.id = g.user_id`

// fields returns the scan destinations for the columns of a grant. Call done after the scan.
func (g *Grant) fields() (to []any, done func()) {
	var scopes db.JSON[[]access.Scope]
	var audience string
	var ip db.Null
	to = []any{&g.orgID, &g.ID, &g.UserID, &g.ClientID, &g.ClientName, &audience, &scopes, &g.CreatedAt, &g.LastUsedAt, &ip,
		&g.revokedAt, &g.stepUpUntil, &g.role, &g.userStatus}
	return to, func() { g.Audience, g.Scopes, g.LastUsedIP = parseAudiences(audience), scopes.V, string(ip) }
}

func scanGrant(scan func(...any) error) (g Grant, err error) {
	to, done := g.fields()
	err = scan(to...)
	done()
	return g, err
}

func getGrant(ctx context.Context, q db.Querier, org, id string) (Grant, error) {
	return scanGrant(q.QueryRow(ctx, `SELECT `+grantColumns+` WHERE g.org_id = $1 AND g.id = $2`, org, id).Scan)
}

func grantsOf(ctx context.Context, q db.Querier, org, user string) ([]Grant, error) {
	rows, err := q.Query(ctx, `SELECT `+grantColumns+
		` WHERE g.org_id = $1 AND g.user_id = $2 AND g.revoked_at IS NULL ORDER BY g.id DESC LIMIT 200`, org, user)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Grant
	for rows.Next() {
		g, err := scanGrant(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, rows.Err()
}

func insertGrant(ctx context.Context, q db.Querier, g Grant) error {
	const text = `INSERT INTO oauth_grants (org_id, id, user_id, client_id, client_name, audience, scopes, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	_, err := q.Exec(ctx, text, g.orgID, g.ID, g.UserID, g.ClientID, g.ClientName, g.Audience.String(), db.AsJSON(g.Scopes), g.CreatedAt)
	return err
}

// revokeGrant revokes a grant and so its tokens. The digests of the tokens stay, to recognise later use.
func revokeGrant(ctx context.Context, q db.Querier, org, id string, at db.Time) error {
	_, err := q.Exec(ctx, `UPDATE oauth_grants SET revoked_at = $3 WHERE org_id = $1 AND id = $2 AND revoked_at IS NULL`, org, id, at)
	return err
}

// revokeGrantsOfUser revokes all grants of a user.
func revokeGrantsOfUser(ctx context.Context, q db.Querier, org, user string, at db.Time) error {
	_, err := q.Exec(ctx, `UPDATE oauth_grants SET revoked_at = $3 WHERE org_id = $1 AND user_id = $2 AND revoked_at IS NULL`, org, user,
		at)
	return err
}

func setGrantUsed(ctx context.Context, q db.Querier, org, id string, at db.Time, source string) error {
	_, err := q.Exec(ctx, `UPDATE oauth_grants SET last_used_at = $3, last_used_ip = $4 WHERE org_id = $1 AND id = $2`, org, id, at, source)
	return err
}

func setStepUp(ctx context.Context, q db.Querier, org, id string, until db.Time) error {
	_, err := q.Exec(ctx, `UPDATE oauth_grants SET step_up_until = $3 WHERE org_id = $1 AND id = $2`, org, id, until)
	return err
}

// storedToken is a token in the database: an access token, or a refresh token, which can be spent once.
type storedToken struct {
	orgID, digest string
	kind          string // access or refresh
	audience      Audiences
	scopes        []access.Scope
	createdAt     db.Time
	expiresAt     db.Time
	spentAt       db.Time
	replacedBy    string // digest of the refresh token that replaced it
	grant         Grant
}

func insertToken(ctx context.Context, q db.Querier, t storedToken) error {
	const text = `INSERT INTO oauth_tokens (org_id, digest, grant_id, kind, audience, scopes, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	_, err := q.Exec(ctx, text, t.orgID, t.digest, t.grant.ID, t.kind, t.audience.String(), db.AsJSON(t.scopes), t.createdAt, t.expiresAt)
	return err
}

func tokenByDigest(ctx context.Context, q db.Querier, digest string) (t storedToken, err error) {
	var scopes db.JSON[[]access.Scope]
	var audience string
	var next db.Null
	to, done := t.grant.fields()
	// tenant: the token identifies its organisation
	const text = `SELECT t.org_id, t.digest, t.kind, t.audience, t.scopes, t.created_at, t.expires_at, t.spent_at, t.next, ` +
		grantColumns +
		` JOIN oauth_tokens t ON t.org_id = g.org_id AND t.grant_id = g.id WHERE t.digest = $1`
	err = q.QueryRow(ctx, text, digest).Scan(append([]any{&t.orgID, &t.digest, &t.kind, &audience, &scopes, &t.createdAt, &t.expiresAt,
		&t.spentAt, &next}, to...)...)
	done()
	t.audience, t.scopes, t.replacedBy = parseAudiences(audience), scopes.V, string(next)
	return t, err
}

// spendToken marks a refresh token as used. ok is false if another request was first.
func spendToken(ctx context.Context, q db.Querier, org, digest, next string, at db.Time) (ok bool, err error) {
	const text = `UPDATE oauth_tokens SET spent_at = $3, next = $4 WHERE org_id = $1 AND digest = $2 AND spent_at IS NULL`
	r, err := q.Exec(ctx, text, org, digest, at, next)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// dropAccess deletes an access token.
func dropAccess(ctx context.Context, q db.Querier, org, digest string) error {
	_, err := q.Exec(ctx, `DELETE FROM oauth_tokens WHERE org_id = $1 AND digest = $2 AND kind = 'access'`, org, digest)
	return err
}

func deleteConsent(ctx context.Context, q db.Querier, g Grant) error {
	const text = `DELETE FROM oauth_consents WHERE org_id = $1 AND user_id = $2 AND client_id = $3`
	_, err := q.Exec(ctx, text, g.orgID, g.UserID, g.ClientID)
	return err
}
