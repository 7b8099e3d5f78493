package partner

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
)

// usageOf counts the resources of an organisation.
func usageOf(ctx context.Context, q db.Querier, organ string) (u Usage, err error) {
	const text = `SELECT
		(SELECT COUNT(*) FROM users WHERE org_id = $1 AND status <> 'removed'),
		(SELECT COUNT(*) FROM numbers WHERE org_id = $1 AND status NOT IN ('released', 'failed', 'port_failed')),
		(SELECT COUNT(*) FROM devices WHERE org_id = $1)`
	if err := q.QueryRow(ctx, text, organ).Scan(&u.Users, &u.Numbers, &u.Devices); err != nil {
		return u, err
	}
	bytes, err := org.StoredBytes(ctx, q, organ)
	u.StorageGB = org.Gigabytes(bytes)
	return u, err
}

// emailOf returns the e-mail address of a user; "" if the user does not exist any more.
func emailOf(ctx context.Context, q db.Querier, org, user string) (email string, err error) {
	err = q.QueryRow(ctx, `SELECT email FROM users WHERE org_id = $1 AND id = $2`, org, user).Scan(&email)
	if db.IsNone(err) {
		return "", nil
	}
	return email, err
}

func peopleFilter(org string) *db.Filter {
	return db.Where(`SELECT id, email, first_name || ' ' || last_name, role, status, created_at FROM users WHERE org_id = $1
		AND status <> 'removed'`, org)
}

func people(ctx context.Context, q db.Querier, org, after string, limit int) ([]Person, error) {
	text, args := peopleFilter(org).Page("id", false, after, after, limit).SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	defer rows.Close()
	var all []Person
	for rows.Next() {
		var p Person
		if err := rows.Scan(&p.ID, &p.Email, &p.Name, &p.Role, &p.Status, &p.CreatedAt); err != nil {
			return nil, err
		}
		p.Name = strings.TrimSpace(p.Name)
		all = append(all, p)
	}
	return all, rows.Err()
}

// callsIn calls each for every call that began in a period, in order of start.
func callsIn(ctx context.Context, q db.Querier, org string, since, until db.Time, each func(countedCall)) error {
	const text = `SELECT direction, started_at, ended_at, answered_at IS NOT NULL, missed_reason IS NOT NULL, talk_seconds FROM calls
		WHERE org_id = $1 AND started_at >= $2 AND started_at < $3 ORDER BY started_at, id`
	rows, err := q.Query(ctx, text, org, since, until)
	if err != nil {
		return fmt.Errorf("read calls: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var c countedCall
		if err := rows.Scan(&c.direction, &c.began, &c.ended, &c.answered, &c.missed, &c.seconds); err != nil {
			return err
		}
		each(c)
	}
	return rows.Err()
}

// countRest counts everything except calls.
func countRest(ctx context.Context, q db.Querier, org string, p Period, s *Stats) error {
	const text = `SELECT
		(SELECT COUNT(*) FROM users WHERE org_id = $1 AND status <> 'removed'),
		(SELECT COUNT(*) FROM users WHERE org_id = $1 AND status = 'active'),
		(SELECT COUNT(*) FROM numbers WHERE org_id = $1 AND status NOT IN ('released', 'failed', 'port_failed')),
		(SELECT COUNT(*) FROM recordings WHERE org_id = $1 AND started_at >= $2 AND started_at < $3),
		(SELECT COALESCE(SUM(duration_seconds), 0) FROM recordings WHERE org_id = $1 AND started_at >= $2 AND started_at < $3),
		(SELECT COALESCE(SUM(duration_seconds), 0) FROM transcripts WHERE org_id = $1 AND created_at >= $2 AND created_at < $3
			AND status = 'completed'),
		(SELECT COUNT(*) FROM summaries WHERE org_id = $1 AND created_at >= $2 AND created_at < $3 AND status = 'completed')`
	var recorded, transcribed int
	err := q.QueryRow(ctx, text, org, p.Since, p.Until).Scan(&s.Users.Total, &s.Users.Active, &s.Numbers, &s.Recordings.Count, &recorded,
		&transcribed, &s.AI.Summaries)
	s.Recordings.Minutes, s.AI.TranscribedMinutes = minutes(recorded), minutes(transcribed)
	return err
}
