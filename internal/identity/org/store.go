package org

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

func insert(ctx context.Context, q db.Querier, o Organization) error {
	const text = `INSERT INTO orgs (id, parent_id, path, live_id, environment, name, plan, status, country, timezone,
			language, settings, created_at, updated_at, limits, external_reference)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $15)`
	if o.storedSettings == nil {
		o.storedSettings = map[string]any{}
	}
	_, err := q.Exec(ctx, text, o.ID, o.ParentID, o.path, db.Null(o.LiveID), o.Environment, o.Name, o.Plan,
		string(o.Status), o.Country, o.Timezone, o.Language, db.AsJSON(o.storedSettings), o.CreatedAt, db.AsJSON(o.ownQuota),
		o.ExternalReference)
	return err
}

// orgColumns ends with whether the organisation has a trunk for emergency calls. A sandbox never has one.
const orgColumns = `id, parent_id, live_id, environment, name, plan, status, country, timezone, language, settings,
	created_at, updated_at, path, limits, suspend_mode, suspend_reason, suspended_at, closed_at, erase_after,
	external_reference, admin_user_id,
	live_id IS NULL
		AND EXISTS (SELECT 1 FROM trunks WHERE trunks.org_id = orgs.id AND trunks.enabled AND trunks.emergency_capable)`

func scan(scan func(...any) error) (Organization, error) {
	var o Organization
	var parent, live, mode db.Null
	var own db.JSON[Quota]
	var explicit db.JSON[map[string]any]
	var emergency bool
	err := scan(&o.ID, &parent, &live, &o.Environment, &o.Name, &o.Plan, &o.Status, &o.Country, &o.Timezone, &o.Language,
		&explicit, &o.CreatedAt, &o.UpdatedAt, &o.path, &own, &mode, &o.SuspendReason, &o.SuspendedAt, &o.ClosedAt, &o.EraseAfter,
		&o.ExternalReference, &o.AdminUserID, &emergency)
	if err != nil {
		return o, err
	}
	o.ParentID, o.LiveID, o.storedSettings, o.ownQuota, o.SuspendMode = parent.Ptr(), string(live), explicit.V, own.V, Mode(mode)
	o.Settings, err = effective(o.Country, o.storedSettings)
	o.EmergencyCalling = "not_available"
	if emergency {
		o.EmergencyCalling, o.Emergency.Status = "available", "configured"
	}
	return o, err
}

func get(ctx context.Context, q db.Querier, id string) (Organization, error) {
	return scan(q.QueryRow(ctx, `SELECT `+orgColumns+` FROM orgs WHERE id = $1`, id).Scan)
}

// list returns the live organisations.
func list(ctx context.Context, q db.Querier) ([]Organization, error) {
	return queryOrgs(ctx, q, `SELECT `+orgColumns+` FROM orgs WHERE live_id IS NULL ORDER BY id`)
}

// countLive returns the number of live organisations that are not closed.
func countLive(ctx context.Context, q db.Querier) (n int, err error) {
	// tenant: the shares of calls depend on the number of organisations
	const text = `SELECT COUNT(*) FROM orgs WHERE live_id IS NULL AND status <> 'closed'`
	err = q.QueryRow(ctx, text).Scan(&n)
	return n, err
}

func queryOrgs(ctx context.Context, q db.Querier, text string, args ...any) ([]Organization, error) {
	rows, err := q.Query(ctx, text, args...)
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

// updateChild stores the fields that a partner may change. Plan and limits are stored for the sandbox twin too.
func updateChild(ctx context.Context, q db.Querier, o Organization) error {
	const text = `UPDATE orgs SET name = $2, settings = $3, external_reference = $4, updated_at = $5 WHERE id = $1`
	if _, err := q.Exec(ctx, text, o.ID, o.Name, db.AsJSON(o.storedSettings), o.ExternalReference, o.UpdatedAt); err != nil {
		return err
	}
	_, err := q.Exec(ctx, `UPDATE orgs SET plan = $2, limits = $3 WHERE id = $1 OR live_id = $1`, o.ID, o.Plan, db.AsJSON(o.ownQuota))
	return err
}

// plansInUse returns the plans that organisations have.
func plansInUse(ctx context.Context, q db.Querier) ([]string, error) {
	return db.Strings(ctx, q, "list plans in use", `SELECT DISTINCT plan FROM orgs ORDER BY plan`)
}

// twin returns the id of the sandbox twin of an organisation. The id of a twin returns itself.
func twin(ctx context.Context, q db.Querier, id string) (string, error) {
	const text = `SELECT id FROM orgs WHERE live_id = $1 OR (id = $1 AND live_id IS NOT NULL)`
	var found string
	err := q.QueryRow(ctx, text, id).Scan(&found)
	return found, err
}

func update(ctx context.Context, q db.Querier, o Organization) error {
	const text = `UPDATE orgs SET name = $2, country = $3, timezone = $4, language = $5, settings = $6, updated_at = $7
		WHERE id = $1`
	_, err := q.Exec(ctx, text, o.ID, o.Name, o.Country, o.Timezone, o.Language, db.AsJSON(o.storedSettings), o.UpdatedAt)
	return err
}

// storeState stores the status and the state of an organisation and its twin.
func storeState(ctx context.Context, q db.Querier, id string, status Status, st AccountState, now db.Time) error {
	const text = `UPDATE orgs SET status = $2, suspend_mode = $3, suspend_reason = $4, suspended_at = $5, closed_at = $6,
		erase_after = $7, updated_at = $8 WHERE id = $1 OR live_id = $1`
	r, err := q.Exec(ctx, text, id, string(status), db.Null(st.SuspendMode), st.SuspendReason, st.SuspendedAt, st.ClosedAt, st.EraseAfter,
		now)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return db.ErrNone
	}
	return nil
}
