package db

import (
	"context"
	_ "embed"
	"fmt"
	"time"
)

// sqliteSchema is the schema of an SQLite database after all migrations, with the rows that they insert. make golden writes it. It is a
// tenth of the work of the migrations, each of which that alters a table makes SQLite read the whole schema again.
//
//go:embed schema/sqlite.sql
var sqliteSchema string

// create gives a new SQLite database its schema and records all migrations as applied. It reports whether the database was new.
func (d *DB) create(ctx context.Context, all []Migration) (created bool, err error) {
	err = d.Tx(ctx, func(tx Querier) error {
		err := tx.QueryRow(ctx, `SELECT NOT EXISTS (SELECT 1 FROM sqlite_master WHERE tbl_name <> 'migrations')
			AND NOT EXISTS (SELECT 1 FROM migrations)`).Scan(&created)
		if err != nil || !created {
			return err
		}
		for _, s := range Split(sqliteSchema) {
			if _, err := tx.Exec(ctx, s); err != nil {
				return fmt.Errorf("%w in %s", err, s)
			}
		}
		now := time.Now().UnixMicro()
		for _, m := range all {
			if _, err := tx.Exec(ctx, recordMigration, m.Name, now); err != nil {
				return err
			}
		}
		return nil
	})
	return created && err == nil, err
}
