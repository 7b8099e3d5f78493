package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrNoBackup is returned on PostgreSQL, which has backup tools of its own.
var ErrNoBackup = errors.New("PostgreSQL is backed up with pg_dump")

// Backup writes a consistent copy of an SQLite database to a new file while the database is in use (VACUUM INTO).
func (d *DB) Backup(ctx context.Context, path string) error {
	lite, ok := d.engine.(*sqlite)
	if !ok {
		return ErrNoBackup
	}
	own, err := sql.Open("sqlite", dsn(lite.path, true))
	if err != nil {
		return err
	}
	defer own.Close()
	if _, err := own.ExecContext(ctx, "VACUUM INTO $1", path); err != nil {
		return fmt.Errorf("back up the database to %s: %w", path, err)
	}
	return nil
}
