package signin

import (
	"context"

	"soniq/internal/platform/db"
)

// login holds the sign-in data of a user.
type login struct {
	orgID, userID, hash string
	totp, totpNew       []byte
	step                int64
}

const loginColumns = `SELECT l.org_id, l.user_id, l.hash, l.totp, l.totp_new, l.totp_step FROM account_logins l`

func scanLogin(scan func(...any) error) (l login, err error) {
	err = scan(&l.orgID, &l.userID, &l.hash, &l.totp, &l.totpNew, &l.step)
	return l, err
}

func getLogin(ctx context.Context, q db.Querier, org, user string) (login, error) {
	return scanLogin(q.QueryRow(ctx, loginColumns+` WHERE l.org_id = $1 AND l.user_id = $2`, org, user).Scan)
}

// loginsOf returns the logins of all users with an e-mail address, in all live organisations.
func loginsOf(ctx context.Context, q db.Querier, email string) ([]login, error) {
	// tenant: a user does not name the organisation; the password identifies it
	const text = loginColumns + ` JOIN users u ON u.org_id = l.org_id AND u.id = l.user_id JOIN orgs o ON o.id = l.org_id
		WHERE lower(u.email) = lower($1) AND u.status IN ('active', 'invited') AND o.live_id IS NULL ORDER BY l.org_id LIMIT 10`
	rows, err := q.Query(ctx, text, email)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []login
	for rows.Next() {
		l, err := scanLogin(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, rows.Err()
}

func setHash(ctx context.Context, q db.Querier, org, user, hash string, at db.Time) error {
	const text = `INSERT INTO account_logins (org_id, user_id, hash, changed_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (org_id, user_id) DO UPDATE SET hash = EXCLUDED.hash, changed_at = EXCLUDED.changed_at`
	_, err := q.Exec(ctx, text, org, user, hash, at)
	return err
}

func setTOTP(ctx context.Context, q db.Querier, org, user string, inUse, offered []byte, step int64) error {
	const text = `UPDATE account_logins SET totp = $3, totp_new = $4, totp_step = $5 WHERE org_id = $1 AND user_id = $2`
	_, err := q.Exec(ctx, text, org, user, inUse, offered, step)
	return err
}

// useStep stores the time step of a code. ok is false if this step or a later one was used already.
func useStep(ctx context.Context, q db.Querier, org, user string, step int64) (ok bool, err error) {
	return rowsChanged(q.Exec(ctx, `UPDATE account_logins SET totp_step = $3 WHERE org_id = $1 AND user_id = $2 AND totp_step < $3`, org,
		user, step))
}

func rowsChanged(r interface{ RowsAffected() (int64, error) }, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

func withTOTP(ctx context.Context, q db.Querier, org string, users []string) (map[string]bool, error) {
	text, args := db.Where(`SELECT user_id FROM account_logins WHERE org_id = $1 AND totp IS NOT NULL`, org).In("user_id", users).SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		all[id] = true
	}
	return all, rows.Err()
}

func addRecovery(ctx context.Context, q db.Querier, org, user, digest string) error {
	_, err := q.Exec(ctx, `INSERT INTO account_recovery (org_id, user_id, digest) VALUES ($1, $2, $3)`, org, user, digest)
	return err
}

func useRecoveryCode(ctx context.Context, q db.Querier, org, user, digest string) (ok bool, err error) {
	return rowsChanged(q.Exec(ctx, `DELETE FROM account_recovery WHERE org_id = $1 AND user_id = $2 AND digest = $3`, org, user, digest))
}

func dropRecovery(ctx context.Context, q db.Querier, org, user string) error {
	_, err := q.Exec(ctx, `DELETE FROM account_recovery WHERE org_id = $1 AND user_id = $2`, org, user)
	return err
}

func dropLogin(ctx context.Context, q db.Querier, org, user string) error {
	_, err := q.Exec(ctx, `DELETE FROM account_logins WHERE org_id = $1 AND user_id = $2`, org, user)
	return err
}

// session is a signed-in browser.
type session struct {
	ID        string
	CreatedAt db.Time
	UsedAt    db.Time
	Confirmed db.Time // when a password or code was entered last
	Source    string
	Agent     string
	Here      bool // the session of the current request

	orgID, userID, digest string
	pendingCode           bool
	expiresAt             db.Time
}

const sessionColumns = `SELECT org_id, id, user_id, digest, half, created_at, used_at, expires_at, source, agent,
	confirmed_at FROM account_sessions`

func scanSession(scan func(...any) error) (x session, err error) {
	err = scan(&x.orgID, &x.ID, &x.userID, &x.digest, &x.pendingCode, &x.CreatedAt, &x.UsedAt, &x.expiresAt, &x.Source, &x.Agent,
		&x.Confirmed)
	return x, err
}

func sessionByDigest(ctx context.Context, q db.Querier, digest string, now db.Time) (session, error) {
	// tenant: the cookie identifies its organisation
	const text = sessionColumns + ` WHERE digest = $1 AND expires_at > $2`
	return scanSession(q.QueryRow(ctx, text, digest, now).Scan)
}

func sessionByID(ctx context.Context, q db.Querier, org, id string, now db.Time) (session, error) {
	return scanSession(q.QueryRow(ctx, sessionColumns+` WHERE org_id = $1 AND id = $2 AND expires_at > $3`, org, id, now).Scan)
}

func sessionsOf(ctx context.Context, q db.Querier, org, user string, now db.Time) ([]session, error) {
	const where = ` WHERE org_id = $1 AND user_id = $2 AND expires_at > $3 AND NOT half ORDER BY used_at DESC LIMIT 100`
	return readSessions(ctx, q, sessionColumns+where, org, user, now)
}

// expiredSessions returns sessions of all organisations that expired, the oldest first.
func expiredSessions(ctx context.Context, q db.Querier, now db.Time) ([]session, error) {
	// tenant: sessions of all organisations expire
	const text = sessionColumns + ` WHERE expires_at <= $1 ORDER BY expires_at LIMIT 10000`
	return readSessions(ctx, q, text, now)
}

func readSessions(ctx context.Context, q db.Querier, text string, with ...any) (all []session, err error) {
	err = db.ForEach(ctx, q, "read sessions", text, with, func(scan func(...any) error) error {
		x, err := scanSession(scan)
		all = append(all, x)
		return err
	})
	return all, err
}

func insertSession(ctx context.Context, q db.Querier, x session) error {
	const text = `INSERT INTO account_sessions (org_id, id, user_id, digest, half, created_at, used_at, expires_at, source, agent,
		confirmed_at) VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8, $9, $6)`
	_, err := q.Exec(ctx, text, x.orgID, x.ID, x.userID, x.digest, x.pendingCode, x.CreatedAt, x.expiresAt, x.Source, x.Agent)
	return err
}

func touchSession(ctx context.Context, q db.Querier, x session, now, until db.Time) error {
	_, err := q.Exec(ctx, `UPDATE account_sessions SET used_at = $3, expires_at = $4 WHERE org_id = $1 AND id = $2`, x.orgID, x.ID, now,
		until)
	return err
}

func confirmSession(ctx context.Context, q db.Querier, x session, now db.Time) error {
	_, err := q.Exec(ctx, `UPDATE account_sessions SET confirmed_at = $3 WHERE org_id = $1 AND id = $2`, x.orgID, x.ID, now)
	return err
}

func dropSession(ctx context.Context, q db.Querier, org, user, id string) (bool, error) {
	return rowsChanged(q.Exec(ctx, `DELETE FROM account_sessions WHERE org_id = $1 AND user_id = $2 AND id = $3`, org, user, id))
}

// dropExpiredSession deletes a session unless it was used again or is gone. It reports whether it deleted it.
func dropExpiredSession(ctx context.Context, q db.Querier, x session, now db.Time) (bool, error) {
	return rowsChanged(q.Exec(ctx, `DELETE FROM account_sessions WHERE org_id = $1 AND id = $2 AND expires_at <= $3`, x.orgID, x.ID, now))
}

// dropSessions deletes the sessions of a user, and returns their ids.
func dropSessions(ctx context.Context, q db.Querier, org, user string) ([]string, error) {
	const text = `DELETE FROM account_sessions WHERE org_id = $1 AND user_id = $2 RETURNING id`
	return db.Strings(ctx, q, "end sessions", text, org, user)
}

func insertLink(ctx context.Context, q db.Querier, org, user, digest string, now, until db.Time) error {
	const text = `INSERT INTO account_links (org_id, digest, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)`
	_, err := q.Exec(ctx, text, org, digest, user, now, until)
	return err
}

func linkByDigest(ctx context.Context, q db.Querier, digest string, now db.Time) (org, user string, err error) {
	// tenant: the link identifies its organisation
	const text = `SELECT org_id, user_id FROM account_links WHERE digest = $1 AND expires_at > $2`
	err = q.QueryRow(ctx, text, digest, now).Scan(&org, &user)
	return org, user, err
}

func dropLinks(ctx context.Context, q db.Querier, org, user string) error {
	_, err := q.Exec(ctx, `DELETE FROM account_links WHERE org_id = $1 AND user_id = $2`, org, user)
	return err
}

// failures counts the failed sign-ins of an e-mail address.
type failures struct {
	count            int
	at, blockedUntil db.Time
}

func failuresOf(ctx context.Context, q db.Querier, digest string) (f failures, err error) {
	err = q.QueryRow(ctx, `SELECT failures, failed_at, locked_until FROM login_failures WHERE digest = $1`, digest).Scan(&f.count, &f.at,
		&f.blockedUntil)
	if db.IsNone(err) {
		return f, nil
	}
	return f, err
}

func setFailures(ctx context.Context, q db.Querier, digest string, f failures) error {
	const text = `INSERT INTO login_failures (digest, failures, failed_at, locked_until) VALUES ($1, $2, $3, $4)
		ON CONFLICT (digest) DO UPDATE SET failures = EXCLUDED.failures, failed_at = EXCLUDED.failed_at,
		locked_until = EXCLUDED.locked_until`
	_, err := q.Exec(ctx, text, digest, f.count, f.at, f.blockedUntil)
	return err
}

func dropFailures(ctx context.Context, q db.Querier, digest string) error {
	_, err := q.Exec(ctx, `DELETE FROM login_failures WHERE digest = $1`, digest)
	return err
}

func sweep(ctx context.Context, q db.Querier, gone *int64, now, yesterday db.Time) error {
	// tenant: expired rows of all organisations are deleted
	if err := db.Affected(ctx, q, gone, `DELETE FROM account_links WHERE expires_at <= $1`, now); err != nil {
		return err
	}
	return db.Affected(ctx, q, gone, `DELETE FROM login_failures WHERE failed_at <= $1`, yesterday)
}
