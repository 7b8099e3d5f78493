package db

import (
	"context"
	"fmt"
	"strings"
)

// TenantTable is a table with rows of organisations.
type TenantTable struct {
	Name string
	Key  []string // columns of its primary key
}

// TenantTables returns every table with an org_id, read from the database schema.
func (d *DB) TenantTables(ctx context.Context) ([]TenantTable, error) {
	rows, err := d.Read(ctx).Query(ctx, d.engine.columnsQuery())
	if err != nil {
		return nil, fmt.Errorf("read tables: %w", err)
	}
	defer rows.Close()
	var all []TenantTable
	tenant := false
	keep := func(last TenantTable) {
		if tenant && len(last.Key) > 0 {
			all = append(all, last)
		}
		tenant = false
	}
	var now TenantTable
	for rows.Next() {
		var table, column string
		var key bool
		if err := rows.Scan(&table, &column, &key); err != nil {
			return nil, err
		}
		if table != now.Name {
			keep(now)
			now = TenantTable{Name: table}
		}
		tenant = tenant || column == "org_id"
		if key {
			now.Key = append(now.Key, column)
		}
	}
	keep(now)
	return all, rows.Err()
}

// DeleteTenant deletes at most limit rows of an organisation, and returns their number.
func (t TenantTable) DeleteTenant(ctx context.Context, tx Querier, org string, limit int) (int64, error) {
	key := strings.Join(t.Key, ", ")
	text := fmt.Sprintf(`DELETE FROM %s WHERE (%s) IN (SELECT %s FROM %s WHERE org_id = $1 LIMIT %d)`, t.Name, key, key, t.Name, limit)
	r, err := tx.Exec(ctx, text, org)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (s *sqlite) columnsQuery() string {
	return `SELECT m.name, p.name, p.pk > 0 FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table' ORDER BY m.name, p.cid`
}

func (p *postgres) columnsQuery() string {
	return `SELECT c.table_name, c.column_name, EXISTS (SELECT 1 FROM information_schema.key_column_usage k
			JOIN information_schema.table_constraints t ON t.constraint_schema = k.constraint_schema
			AND t.constraint_name = k.constraint_name
				AND t.table_name = k.table_name
			WHERE t.constraint_type = 'PRIMARY KEY' AND k.table_schema = c.table_schema AND k.table_name = c.table_name
				AND k.column_name = c.column_name)
		FROM information_schema.columns c WHERE c.table_schema = current_schema() ORDER BY c.table_name, c.ordinal_position`
}

// eraseBatch is the number of rows erased in one transaction, so that other writes can run between the batches.
const eraseBatch = 500

// EraseTenant deletes the rows of an organisation in the tables, in batches, and returns their number. A table that
// is still referenced is tried again in the next round, as long as a round makes progress. It may be repeated at any
// point.
func (d *DB) EraseTenant(ctx context.Context, org string, tables []TenantTable) (all int64, err error) {
	for len(tables) > 0 {
		var waiting []TenantTable
		var last error
		progress := false
		for _, t := range tables {
			n, err := d.deleteAll(ctx, org, t)
			all, progress = all+n, progress || n > 0 || err == nil
			if IsForeignKey(err) {
				waiting, last = append(waiting, t), err
			} else if err != nil {
				return all, fmt.Errorf("erase rows of %s: %w", t.Name, err)
			}
		}
		if !progress {
			return all, fmt.Errorf("erase rows: what is left refers to itself: %w", last)
		}
		tables = waiting
	}
	return all, nil
}

// deleteAll deletes rows until none are left, and returns their number.
func (d *DB) deleteAll(ctx context.Context, org string, t TenantTable) (all int64, err error) {
	for {
		var n int64
		err := d.Tx(ctx, func(tx Querier) (err error) {
			n, err = t.DeleteTenant(ctx, tx, org, eraseBatch)
			return err
		})
		all += n
		if err != nil || n == 0 {
			return all, err
		}
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
	}
}
