package prompt

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

const columns = `org_id, id, name, kind, source, text, voice, language, duration_ms, format, size_bytes, blob, created_at`

func insert(ctx context.Context, q db.Querier, a Audio) error {
	const text = `INSERT INTO audio (` + columns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`
	_, err := q.Exec(ctx, text, a.OrgID, a.ID, a.Name, a.Kind, a.Source, a.Text, a.Voice, a.Language, a.Duration.Milliseconds(), a.Format,
		a.SizeBytes, a.blob, a.CreatedAt)
	return err
}

func scan(scan func(...any) error) (Audio, error) {
	var a Audio
	var ms int64
	err := scan(&a.OrgID, &a.ID, &a.Name, &a.Kind, &a.Source, &a.Text, &a.Voice, &a.Language, &ms, &a.Format, &a.SizeBytes, &a.blob,
		&a.CreatedAt)
	a.Duration, a.UsedBy = time.Duration(ms)*time.Millisecond, []Use{}
	return a, err
}

func get(ctx context.Context, q db.Querier, org, id string) (Audio, error) {
	return scan(q.QueryRow(ctx, `SELECT `+columns+` FROM audio WHERE org_id = $1 AND id = $2`, org, id).Scan)
}

func remove(ctx context.Context, q db.Querier, org, id string) error {
	_, err := q.Exec(ctx, `DELETE FROM audio WHERE org_id = $1 AND id = $2`, org, id)
	return err
}

func count(ctx context.Context, q db.Querier, org string) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT COUNT(*) FROM audio WHERE org_id = $1`, org).Scan(&n)
	return n, err
}

// listFilter returns the WHERE clause of a list.
func listFilter(org string, kinds []string, part string) *db.Filter {
	f := db.Where(`SELECT `+columns+` FROM audio WHERE org_id = $1`, org).In("kind", kinds)
	if part != "" {
		f.And(`lower(name) LIKE lower(?) ESCAPE '\'`, "%"+db.Escape(part)+"%")
	}
	return f
}

func list(ctx context.Context, q db.Querier, f *db.Filter, after string, limit int) ([]Audio, error) {
	text, args := f.Page("id", false, after, after, limit).SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list audio: %w", err)
	}
	defer rows.Close()
	var all []Audio
	for rows.Next() {
		a, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, rows.Err()
}

// greetingUses returns the users whose voicemail greeting is an audio file.
func greetingUses(ctx context.Context, q db.Querier, org, id string) ([]Use, error) {
	const text = `SELECT id FROM users WHERE org_id = $1 AND status <> 'removed' AND voicemail LIKE $2 ORDER BY id LIMIT 100`
	rows, err := q.Query(ctx, text, org, `%"`+id+`"%`)
	if err != nil {
		return nil, fmt.Errorf("find greetings: %w", err)
	}
	defer rows.Close()
	all := []Use{}
	for rows.Next() {
		u := Use{Type: "user"}
		if err := rows.Scan(&u.ID); err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, rows.Err()
}
