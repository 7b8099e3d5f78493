package db

import (
	"context"
	"database/sql"
	"fmt"
)

// Settle brings what was written into the database file itself and empties the log beside it, so that nothing older lies there
// any more; what is deleted is overwritten with zeros (secure_delete). On PostgreSQL, which removes deleted rows from its files when
// it vacuums them, it does nothing.
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
