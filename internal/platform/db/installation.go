package db

import (
	"context"
	"fmt"
	"strings"
)

// Fact is the name of a value that holds for the whole installation.
type Fact string

// The facts of an installation.
const (
	KeyFingerprint Fact = "key_fingerprint" // of the master key that seals the secrets in the database
	SchemaVersion  Fact = "schema_version"  // version of soniq that applied the last migration
	LastMoment     Fact = "last_moment"     // latest trusted time, in microseconds since 1970
	ClockDoubt     Fact = "clock_doubt"     // time of a clock that is not trusted, and for how long it ran on, in microseconds
	Place          Fact = "place"           // where the database was at the last start
	Restored       Fact = "restored"        // set while the database is a copy that the operator has not confirmed
)

// Fact returns the value of a fact. It is empty if the fact is not stored, or the table does not exist yet.
func (d *DB) Fact(ctx context.Context, name Fact) (value string, err error) {
	there, err := d.HasTable(ctx, "installation")
	if err != nil || !there {
		return "", err
	}
	err = d.Read(ctx).QueryRow(ctx, `SELECT value FROM installation WHERE name = $1`, string(name)).Scan(&value)
	if IsNone(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s of the installation: %w", name, err)
	}
	return value, nil
}

// SetFact stores a fact.
func (d *DB) SetFact(ctx context.Context, name Fact, value string) error {
	const text = `INSERT INTO installation (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2`
	return d.Tx(ctx, func(tx Querier) error {
		_, err := tx.Exec(ctx, text, string(name), value)
		return err
	})
}

// ClaimFact stores a fact unless it is stored already, and returns the stored value. Of several nodes one succeeds.
func (d *DB) ClaimFact(ctx context.Context, name Fact, value string) (stored string, err error) {
	const text = `INSERT INTO installation (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`
	err = d.Tx(ctx, func(tx Querier) error {
		if _, err := tx.Exec(ctx, text, string(name), value); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT value FROM installation WHERE name = $1`, string(name)).Scan(&stored)
	})
	return stored, err
}

// SwapFact changes a fact from old to value, and reports whether it was old. Of several nodes one succeeds.
func SwapFact(ctx context.Context, tx Querier, name Fact, old, value string) (swapped bool, err error) {
	r, err := tx.Exec(ctx, `UPDATE installation SET value = $3 WHERE name = $1 AND value = $2`, string(name), old, value)
	if err != nil {
		return false, fmt.Errorf("change %s of the installation: %w", name, err)
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// Address identifies a database of PostgreSQL. A dump that is restored, and a copy by CREATE DATABASE, have another one. A replica
// that takes over has the same.
type Address struct {
	Database int64  `json:"database"`         // oid in its cluster
	System   string `json:"system,omitempty"` // identifier of the cluster; "" if the user may not read it
}

// Differs reports whether two addresses belong to different databases.
func (a Address) Differs(b Address) bool {
	return a.Database != b.Database || a.System != "" && b.System != "" && a.System != b.System
}

func (a Address) String() string {
	return fmt.Sprintf("database %d of cluster %s", a.Database, a.System)
}

// Address returns the identity of a database of PostgreSQL.
func (d *DB) Address(ctx context.Context) (*Address, error) {
	var a Address
	err := d.Read(ctx).QueryRow(ctx, `SELECT oid::bigint FROM pg_database WHERE datname = current_database()`).Scan(&a.Database)
	if err != nil {
		return nil, fmt.Errorf("identify the database: %w", err)
	}
	if d.Read(ctx).QueryRow(ctx, `SELECT system_identifier::text FROM pg_control_system()`).Scan(&a.System) != nil {
		a.System = "" // the right was taken from the user
	}
	return &a, nil
}

// NewerError is returned if the database has migrations that this program does not know.
type NewerError struct {
	Names   []string // unknown migrations, in order
	Version string   // version of soniq that applied them; "" if it is not known
}

func (e *NewerError) Error() string {
	names := strings.Join(e.Names[:min(len(e.Names), 3)], ", ")
	if more := len(e.Names) - 3; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	by := ""
	if e.Version != "" {
		by = " by soniq " + e.Version
	}
	return fmt.Sprintf("the database is newer than this program: it was migrated%s and has migrations that are unknown here: %s", by, names)
}

// HasTable reports whether a table exists.
func (d *DB) HasTable(ctx context.Context, name string) (found bool, err error) {
	text := `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = $1)`
	if d.name == "postgres" {
		text = `SELECT to_regclass($1) IS NOT NULL`
	}
	err = d.Read(ctx).QueryRow(ctx, text, name).Scan(&found)
	return found, err
}
