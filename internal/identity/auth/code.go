package auth

import (
	"context"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// authorizationCode is a consent of a user that the client has not exchanged yet.
type authorizationCode struct {
	orgID, digest, userID, clientID, clientName string
	redirectURI, challenge                      string
	audience                                    Audiences
	scopes                                      []access.Scope
	createdAt, expiresAt                        db.Time
	grantID                                     string // set once the code was used
}

func insertCode(ctx context.Context, q db.Querier, c authorizationCode) error {
	const text = `INSERT INTO oauth_codes (org_id, digest, user_id, client_id, client_name, redirect_uri, challenge, audience, scopes,
		created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	_, err := q.Exec(ctx, text, c.orgID, c.digest, c.userID, c.clientID, c.clientName, c.redirectURI, c.challenge, c.audience.String(),
		db.AsJSON(c.scopes), c.createdAt, c.expiresAt)
	return err
}

func codeByDigest(ctx context.Context, q db.Querier, digest string) (c authorizationCode, err error) {
	var scopes db.JSON[[]access.Scope]
	var audience string
	var grant db.Null
	// tenant: the code identifies its organisation
	const text = `SELECT org_id, digest, user_id, client_id, client_name, redirect_uri, challenge, audience, scopes, created_at, expires_at,
		grant_id
		FROM oauth_codes WHERE digest = $1`
	err = q.QueryRow(ctx, text, digest).Scan(&c.orgID, &c.digest, &c.userID, &c.clientID, &c.clientName, &c.redirectURI, &c.challenge,
		&audience, &scopes, &c.createdAt, &c.expiresAt, &grant)
	c.audience, c.scopes, c.grantID = parseAudiences(audience), scopes.V, string(grant)
	return c, err
}

// markCodeUsed marks a code as used. ok is false if another request was first.
func markCodeUsed(ctx context.Context, q db.Querier, org, digest, grant string) (ok bool, err error) {
	r, err := q.Exec(ctx, `UPDATE oauth_codes SET grant_id = $3 WHERE org_id = $1 AND digest = $2 AND grant_id IS NULL`, org, digest, grant)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// consentedScopes returns the scopes that the user has granted to a client before; none if never.
func consentedScopes(ctx context.Context, q db.Querier, org, user, client, audience string) ([]access.Scope, error) {
	var scopes db.JSON[[]access.Scope]
	const text = `SELECT scopes FROM oauth_consents WHERE org_id = $1 AND user_id = $2 AND client_id = $3 AND audience = $4`
	err := q.QueryRow(ctx, text, org, user, client, audience).Scan(&scopes)
	if db.IsNone(err) {
		return nil, nil
	}
	return scopes.V, err
}

func storeConsent(ctx context.Context, q db.Querier, org, user, client, audience string, scopes []access.Scope, at db.Time) error {
	const text = `INSERT INTO oauth_consents (org_id, user_id, client_id, audience, scopes, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (org_id, user_id, client_id, audience) DO UPDATE SET scopes = EXCLUDED.scopes, updated_at = EXCLUDED.updated_at`
	_, err := q.Exec(ctx, text, org, user, client, audience, db.AsJSON(scopes), at)
	return err
}
