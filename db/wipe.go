package db

import (
	"context"
	"database/sql"
	"fmt"
)

// Wipe is Tx for what must not be found in the file afterwards: on SQLite what is deleted is overwritten with zeros, too.
// PostgreSQL removes deleted rows from its files when it vacuums them.
func (d *DB) Wipe(ctx context.Context, fn func(tx Querier) error) error {
	lite := d.name == "sqlite"
	return d.Tx(ctx, func(tx Querier) error {
		if !lite {
			return fn(tx)
		}
		if _, err := tx.Exec(ctx, "PRAGMA secure_delete = ON"); err != nil {
			return err
		}
		if err := fn(tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "PRAGMA secure_delete = OFF")
		return err
	})
}

// Settle brings what was written into the database file itself and empties the log beside it, so that nothing older lies there
// any more. On PostgreSQL it does nothing.
func (d *DB) Settle(ctx context.Context) error {
	lite, ok := d.engine.(*sqlite)
	if !ok {
		return nil
	}
	own, err := sql.Open("sqlite", dsn(lite.path, true))
	if err != nil {
		return err
	}
	defer own.Close()
	if _, err := own.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return fmt.Errorf("empty the log of the database: %w", err)
	}
	return nil
}
