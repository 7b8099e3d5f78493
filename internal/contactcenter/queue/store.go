package queue

import (
	"context"
	"encoding/json"
	"fmt"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
)

func insert(ctx context.Context, tx db.Querier, k Queue) error {
	const text = `INSERT INTO queues (org_id, id, name, extension, settings, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	if _, err := tx.Exec(ctx, text, k.OrgID, k.ID, k.Name, k.Extension, db.AsJSON(k.Settings), k.CreatedAt, k.UpdatedAt); err != nil {
		return err
	}
	return org.SetExtension(ctx, tx, k.OrgID, k.ID, k.extension())
}

func update(ctx context.Context, tx db.Querier, k Queue) error {
	const text = `UPDATE queues SET name = $3, extension = $4, settings = $5, updated_at = $6 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, text, k.OrgID, k.ID, k.Name, k.Extension, db.AsJSON(k.Settings), k.UpdatedAt); err != nil {
		return err
	}
	return org.SetExtension(ctx, tx, k.OrgID, k.ID, k.extension())
}

func (k Queue) extension() string {
	if k.Extension == nil {
		return ""
	}
	return *k.Extension
}

// softDelete removes a queue and keeps its row for history.
func softDelete(ctx context.Context, tx db.Querier, k Queue, now db.Time) error {
	const leave = `DELETE FROM queue_members WHERE org_id = $1 AND queue_id = $2`
	if _, err := tx.Exec(ctx, leave, k.OrgID, k.ID); err != nil {
		return err
	}
	const text = `UPDATE queues SET extension = NULL, removed_at = $3, updated_at = $3 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, text, k.OrgID, k.ID, now); err != nil {
		return err
	}
	return org.SetExtension(ctx, tx, k.OrgID, k.ID, "")
}

const queueColumns = `SELECT k.org_id, k.id, k.name, k.extension, k.settings, k.created_at, k.updated_at,
	(SELECT COUNT(*) FROM queue_members m WHERE m.org_id = k.org_id AND m.queue_id = k.id)
	FROM queues k WHERE k.org_id = $1 AND k.removed_at IS NULL`

func scan(scan func(...any) error) (Queue, error) {
	k := Queue{Settings: defaults()}
	var settings string
	err := scan(&k.OrgID, &k.ID, &k.Name, &k.Extension, &settings, &k.CreatedAt, &k.UpdatedAt, &k.MembersCount)
	if err != nil {
		return k, err
	}
	return k, json.Unmarshal([]byte(settings), &k.Settings) // over the defaults: settings that are not stored keep them
}

func get(ctx context.Context, q db.Querier, org, id string) (Queue, error) {
	return scan(q.QueryRow(ctx, queueColumns+` AND k.id = $2`, org, id).Scan)
}

// filter returns the list statement without its page.
func (in *ListIn) filter(org string) *db.Filter {
	f := db.Where(queueColumns, org)
	if in.Q != "" {
		f.And(`lower(k.name) LIKE lower(?) ESCAPE '\' OR k.extension = ?`, "%"+db.Escape(in.Q)+"%", in.Q)
	}
	if in.MemberID != "" {
		f.And(`EXISTS (SELECT 1 FROM queue_members m WHERE m.org_id = k.org_id AND m.queue_id = k.id AND m.user_id = ?)`, in.MemberID)
	}
	return f
}

// listQueues reads queues in the order of their ids.
func listQueues(ctx context.Context, q db.Querier, f *db.Filter, after string, limit int) (found []Queue, err error) {
	if after != "" {
		f.And("k.id > ?", after)
	}
	text, args := f.SQL()
	text += fmt.Sprintf(" ORDER BY k.id LIMIT %d", limit)
	err = db.ForEach(ctx, q, "list queues", text, args, func(read func(...any) error) error {
		k, err := scan(read)
		found = append(found, k)
		return err
	})
	return found, err
}
