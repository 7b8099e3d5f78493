package auth

import (
	"context"
	"database/sql"
	"fmt"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

func insert(ctx context.Context, q db.Querier, k Key, digest string) error {
	const text = `INSERT INTO api_keys (org_id, id, digest, name, kind, environment, prefix, hint, scopes, user_id,
			allowed_ips, expires_at, created_by, created_at, role)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`
	_, err := q.Exec(ctx, text, k.orgID, k.ID, digest, k.Name, string(k.Kind), k.Environment, k.Prefix, k.Hint,
		db.AsJSON(k.Scopes), k.UserID, db.AsJSON(k.AllowedIPs), k.ExpiresAt, k.CreatedBy, k.CreatedAt, k.role)
	return err
}

const keyColumns = `org_id, id, name, kind, environment, prefix, hint, scopes, user_id, allowed_ips, expires_at,
	last_used_at, last_used_ip, created_by, created_at, revoked_at, rotates_to, role,
	(SELECT u.role FROM users u WHERE u.org_id = api_keys.org_id AND u.id = api_keys.user_id),
	(SELECT u.status FROM users u WHERE u.org_id = api_keys.org_id AND u.id = api_keys.user_id)`

func scan(scan func(...any) error) (Key, error) {
	var k Key
	var scopes db.JSON[[]access.Scope]
	var ips db.JSON[[]string]
	var user, usedIP, next, role, status db.Null
	err := scan(&k.orgID, &k.ID, &k.Name, &k.Kind, &k.Environment, &k.Prefix, &k.Hint, &scopes, &user, &ips, &k.ExpiresAt,
		&k.LastUsedAt, &usedIP, &k.CreatedBy, &k.CreatedAt, &k.RevokedAt, &next, &k.role, &role, &status)
	k.userRole, k.userStatus = string(role), string(status)
	k.Scopes, k.AllowedIPs, k.UserID, k.LastUsedIP, k.RotatesTo = scopes.V, ips.V, user.Ptr(), usedIP.Ptr(), next.Ptr()
	for _, ip := range k.AllowedIPs {
		if p, err := network(ip); err == nil {
			k.networks = append(k.networks, p)
		}
	}
	return k, err
}

func keyByDigest(ctx context.Context, q db.Querier, digest string) (Key, error) {
	// tenant: the key identifies its organisation
	const text = `SELECT ` + keyColumns + ` FROM api_keys WHERE digest = $1`
	return scan(q.QueryRow(ctx, text, digest).Scan)
}

// get returns a key of the organisation or of its sandbox twin, and the digest of the key.
func get(ctx context.Context, q db.Querier, org, twin, id string) (k Key, digest string, err error) {
	const text = `SELECT digest, ` + keyColumns + ` FROM api_keys WHERE org_id IN ($1, $2) AND id = $3`
	row := q.QueryRow(ctx, text, org, twin, id)
	k, err = scan(func(to ...any) error { return row.Scan(append([]any{&digest}, to...)...) })
	return k, digest, err
}

// keysOf returns the list statement without its page.
func keysOf(org, twin string) *db.Filter {
	return db.Where(`SELECT `+keyColumns+` FROM api_keys WHERE org_id IN ($1, $2)`, org, twin)
}

func list(ctx context.Context, q db.Querier, org, twin string, after string, limit int) ([]Key, error) {
	text, args := keysOf(org, twin).Page("id", true, after, after, limit).SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	defer rows.Close()
	var all []Key
	for rows.Next() {
		k, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, rows.Err()
}

// setRevoked sets when a key ends, and the key that replaces it.
func setRevoked(ctx context.Context, q db.Querier, org, id string, at db.Time, next string) error {
	const text = `UPDATE api_keys SET revoked_at = $3, rotates_to = $4 WHERE org_id = $1 AND id = $2`
	_, err := q.Exec(ctx, text, org, id, at, db.Null(next))
	return err
}

// revokeKeysOfUser revokes every key of a user and returns their digests.
func revokeKeysOfUser(ctx context.Context, q db.Querier, org, user string, at db.Time) ([]string, error) {
	const text = `UPDATE api_keys SET revoked_at = $3
		WHERE org_id = $1 AND user_id = $2 AND (revoked_at IS NULL OR revoked_at > $3) RETURNING digest`
	rows, err := q.Query(ctx, text, org, user, at)
	if err != nil {
		return nil, err
	}
	return scanStrings(rows)
}

// digestsOfUser returns the digests of a user's keys.
func digestsOfUser(ctx context.Context, q db.Querier, org, user string) ([]string, error) {
	rows, err := q.Query(ctx, `SELECT digest FROM api_keys WHERE org_id = $1 AND user_id = $2`, org, user)
	if err != nil {
		return nil, err
	}
	return scanStrings(rows)
}

func scanStrings(rows *sql.Rows) ([]string, error) {
	defer rows.Close()
	var all []string
	for rows.Next() {
		var d string
		if err := rows.Scan(&d); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, rows.Err()
}

func setUsed(ctx context.Context, q db.Querier, org, id string, at db.Time, source string) error {
	const text = `UPDATE api_keys SET last_used_at = $3, last_used_ip = $4 WHERE org_id = $1 AND id = $2`
	_, err := q.Exec(ctx, text, org, id, at, source)
	return err
}

// keyUser returns the user of a key.
func keyUser(ctx context.Context, q db.Querier, org, id string) (Person, error) {
	const text = `SELECT id, email, first_name, last_name, role FROM users WHERE org_id = $1 AND id = $2`
	var p Person
	var last string
	err := q.QueryRow(ctx, text, org, id).Scan(&p.ID, &p.Email, &p.Name, &last, &p.Role)
	if last != "" {
		p.Name += " " + last
	}
	return p, err
}
