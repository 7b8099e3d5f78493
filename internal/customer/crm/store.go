package crm

import (
	"context"
	"fmt"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

const connectionColumns = `id, org_id, provider, name, enabled, priority, timeout_ms, settings, field_map, refreshed_at, entries,
	refresh_error, created_at, updated_at, mark, holder,
	(SELECT COALESCE(g.refused, 'yes') FROM crm_grants g WHERE g.org_id = crm_connections.org_id AND g.connection_id = crm_connections.id)`

func scanConnection(scan func(...any) error) (Connection, error) {
	var c Connection
	var fields db.JSON[map[string]string]
	var refresh, mark, granted db.Null
	var settings []byte
	var holder db.JSON[access.Holder]
	err := scan(&c.ID, &c.org, &c.Provider, &c.Name, &c.enabled, &c.Priority, &c.TimeoutMS, &settings, &fields, &c.RefreshedAt, &c.Entries,
		&refresh, &c.CreatedAt, &c.updatedAt, &mark, &holder, &granted)
	c.holder = holder.V
	c.syncToken = string(mark)
	c.FieldMap, c.refreshError, c.settings, c.grantState = fields.V, string(refresh), settings, string(granted)
	return c, err
}

func getConnection(ctx context.Context, q db.Querier, org, id string) (Connection, error) {
	return scanConnection(q.QueryRow(ctx, `SELECT `+connectionColumns+` FROM crm_connections WHERE org_id = $1 AND id = $2`, org, id).Scan)
}

func listConnections(ctx context.Context, q db.Querier, org string) ([]Connection, error) {
	rows, err := q.Query(ctx, `SELECT `+connectionColumns+` FROM crm_connections WHERE org_id = $1 ORDER BY id`, org)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Connection
	for rows.Next() {
		c, err := scanConnection(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// putConnection inserts or updates a connection. Its settings are sealed. The sync token is reset.
func putConnection(ctx context.Context, tx db.Querier, c Connection, sealed []byte) error {
	const q = `INSERT INTO crm_connections (org_id, id, provider, name, enabled, priority, timeout_ms, settings, field_map, entries,
		created_at, updated_at, holder)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, $11, $12)
		ON CONFLICT (org_id, id) DO UPDATE SET name = excluded.name, enabled = excluded.enabled, priority = excluded.priority,
			timeout_ms = excluded.timeout_ms, settings = excluded.settings, field_map = excluded.field_map, mark = NULL,
			updated_at = excluded.updated_at, holder = excluded.holder`
	_, err := tx.Exec(ctx, q, c.org, c.ID, c.Provider, c.Name, c.enabled, c.Priority, c.TimeoutMS, sealed, db.AsJSON(c.FieldMap),
		c.CreatedAt, c.updatedAt, db.AsJSON(c.holder))
	if err != nil {
		return fmt.Errorf("write connection: %w", err)
	}
	return nil
}

func deleteConnection(ctx context.Context, tx db.Querier, org, id string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM crm_connections WHERE org_id = $1 AND id = $2`, org, id); err != nil {
		return fmt.Errorf("delete connection: %w", err)
	}
	return nil
}

// saveRefresh writes the result of a read of a list. A negative entries leaves the count unchanged. It has no effect
// if the connection has changed meanwhile.
func saveRefresh(ctx context.Context, tx db.Querier, c Connection, entries int, at db.Time, why, mark string) error {
	const q = `UPDATE crm_connections SET entries = CASE WHEN $3 < 0 THEN entries ELSE $3 END, refreshed_at = COALESCE($4, refreshed_at),
		refresh_error = $5, mark = $6
		WHERE org_id = $1 AND id = $2 AND updated_at = $7`
	if _, err := tx.Exec(ctx, q, c.org, c.ID, entries, at, db.Null(why), db.Null(mark), c.updatedAt); err != nil {
		return fmt.Errorf("write result of refresh: %w", err)
	}
	return nil
}
