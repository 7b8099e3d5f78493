package db

import (
	"context"
	"database/sql"
	"fmt"
)

// CheckpointAndScrub moves the write-ahead log into the database file and truncates it, so that no older data remains
// in it. Deleted data is overwritten with zeros (secure_delete). On PostgreSQL it does nothing, because VACUUM
// removes deleted rows.
func (d *DB) CheckpointAndScrub(ctx context.Context) error {
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
