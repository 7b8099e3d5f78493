package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
)

// ErrNoBackup is returned on PostgreSQL, which has backup tools of its own.
var ErrNoBackup = errors.New("PostgreSQL is backed up with pg_dump")

// Backup writes a consistent copy of an SQLite database to a new file while the database is in use (VACUUM INTO). In the copy it
// stores facts.
func (d *DB) Backup(ctx context.Context, path string, facts map[Fact]string) error {
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
	return storeIn(ctx, path, facts)
}

// VerifyFile checks an SQLite database that no process has open, page by page, and returns a fact of it. It changes nothing.
func VerifyFile(ctx context.Context, path string, name Fact) (value string, err error) {
	one, err := sql.Open("sqlite", "file:"+url.PathEscape(path)+"?mode=ro&immutable=1")
	if err != nil {
		return "", err
	}
	defer one.Close()
	var found string
	if err := one.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&found); err != nil {
		return "", fmt.Errorf("check the database %s: %w", path, err)
	}
	if found != "ok" {
		return "", fmt.Errorf("the database %s is damaged: %s", path, found)
	}
	err = one.QueryRowContext(ctx, "SELECT value FROM installation WHERE name = $1", string(name)).Scan(&value)
	if err != nil && !IsNone(err) {
		return "", fmt.Errorf("read the database %s: %w", path, err)
	}
	return value, nil
}

// storeIn stores facts in an SQLite database that is not open anywhere else.
func storeIn(ctx context.Context, path string, facts map[Fact]string) error {
	one, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	for name, value := range facts {
		const text = `INSERT INTO installation (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2`
		if _, err := one.ExecContext(ctx, text, string(name), value); err != nil {
			return errors.Join(fmt.Errorf("mark the copy %s: %w", path, err), one.Close())
		}
	}
	return one.Close()
}
