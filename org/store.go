package org

import (
	"context"
	"fmt"

	"soniq/db"
)

func insert(ctx context.Context, q db.Querier, o Organization) error {
	const text = `INSERT INTO orgs (id, parent_id, path, live_id, environment, name, plan, status, country, timezone,
			language, settings, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)`
	_, err := q.Exec(ctx, text, o.ID, o.ParentID, "/"+o.ID+"/", db.Null(o.LiveID), o.Environment, o.Name, o.Plan,
		string(o.Status), o.Country, o.Timezone, o.Language, db.AsJSON(map[string]any{}), o.CreatedAt)
	return err
}

// columns ends with whether the organisation has a trunk that emergency calls may take; a sandbox never has.
const columns = `id, parent_id, live_id, environment, name, plan, status, country, timezone, language, settings,
	created_at, updated_at,
	live_id IS NULL
		AND EXISTS (SELECT 1 FROM trunks WHERE trunks.org_id = orgs.id AND trunks.enabled AND trunks.emergency_capable)`

func scan(scan func(...any) error) (Organization, error) {
	var o Organization
	var parent, live db.Null
	var explicit db.JSON[map[string]any]
	var emergency bool
	err := scan(&o.ID, &parent, &live, &o.Environment, &o.Name, &o.Plan, &o.Status, &o.Country, &o.Timezone, &o.Language,
		&explicit, &o.CreatedAt, &o.UpdatedAt, &emergency)
	if err != nil {
		return o, err
	}
	o.ParentID, o.LiveID, o.explicit = parent.Ptr(), string(live), explicit.V
	o.Settings, err = effective(o.Country, o.explicit)
	o.EmergencyCalling = "not_available"
	if emergency {
		o.EmergencyCalling, o.Emergency.Status = "available", "configured"
	}
	return o, err
}

func get(ctx context.Context, q db.Querier, id string) (Organization, error) {
	return scan(q.QueryRow(ctx, `SELECT `+columns+` FROM orgs WHERE id = $1`, id).Scan)
}

// list returns the live organisations.
func list(ctx context.Context, q db.Querier) ([]Organization, error) {
	rows, err := q.Query(ctx, `SELECT `+columns+` FROM orgs WHERE live_id IS NULL ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("list organisations: %w", err)
	}
	defer rows.Close()
	var all []Organization
	for rows.Next() {
		o, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, rows.Err()
}

// twin finds the sandbox twin; a twin is found by its own id too.
func twin(ctx context.Context, q db.Querier, id string) (string, error) {
	const text = `SELECT id FROM orgs WHERE live_id = $1 OR (id = $1 AND live_id IS NOT NULL)`
	var found string
	err := q.QueryRow(ctx, text, id).Scan(&found)
	return found, err
}

func update(ctx context.Context, q db.Querier, o Organization) error {
	const text = `UPDATE orgs SET name = $2, country = $3, timezone = $4, language = $5, settings = $6, updated_at = $7
		WHERE id = $1`
	_, err := q.Exec(ctx, text, o.ID, o.Name, o.Country, o.Timezone, o.Language, db.AsJSON(o.explicit), o.UpdatedAt)
	return err
}

func setStatus(ctx context.Context, q db.Querier, id string, status Status, now db.Time) error {
	const text = `UPDATE orgs SET status = $2, updated_at = $3 WHERE id = $1 OR live_id = $1`
	r, err := q.Exec(ctx, text, id, string(status), now)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return db.ErrNone
	}
	return nil
}
