package db

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"
)

//go:embed migrations/*.sql
var files embed.FS

// Migration is one step of the schema. A released step is never edited.
type Migration struct {
	Name string // such as 0001_org
	SQL  string
}

// Migrations returns all steps in order.
func Migrations() ([]Migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	all := make([]Migration, 0, len(names))
	for _, n := range names {
		b, err := files.ReadFile(n)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(n, "migrations/"), ".sql")
		all = append(all, Migration{Name: name, SQL: string(b)})
	}
	return all, nil
}

// Pending returns the steps that are not applied yet. It returns a NewerError if the database has steps that this program does not know.
func (d *DB) Pending(ctx context.Context) ([]Migration, error) {
	all, err := Migrations()
	if err != nil {
		return nil, err
	}
	done, err := d.applied(ctx)
	if err != nil {
		return nil, err
	}
	var open []Migration
	for _, m := range all {
		if !done[m.Name] {
			open = append(open, m)
		}
		delete(done, m.Name)
	}
	return open, d.newer(ctx, done)
}

// newer returns the error for migrations that this program does not know, or nil if there are none.
func (d *DB) newer(ctx context.Context, unknown map[string]bool) error {
	if len(unknown) == 0 {
		return nil
	}
	version, err := d.Fact(ctx, SchemaVersion)
	if err != nil {
		return err
	}
	return &NewerError{Names: slices.Sorted(maps.Keys(unknown)), Version: version}
}

// Migrate applies all pending steps, each in a transaction of its own, and returns their names. A new SQLite database gets its schema at
// once. It changes nothing if the database is newer than this program.
func (d *DB) Migrate(ctx context.Context) ([]string, error) {
	open, err := d.pendingPrepared(ctx)
	if err != nil {
		return nil, err
	}
	if d.name == "sqlite" {
		if created, err := d.create(ctx, open); err != nil {
			return nil, fmt.Errorf("create the schema: %w", err)
		} else if created {
			return namesOf(open), nil
		}
	}
	return d.applyEach(ctx, open)
}

// pendingPrepared returns the pending steps of a database that is ready for them.
func (d *DB) pendingPrepared(ctx context.Context) ([]Migration, error) {
	if _, err := d.Pending(ctx); err != nil {
		return nil, err
	}
	if err := d.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare for migrations: %w", err)
	}
	return d.Pending(ctx)
}

func namesOf(all []Migration) (names []string) {
	for _, m := range all {
		names = append(names, m.Name)
	}
	return names
}

// applyEach applies steps in order, and returns the names of those that are applied.
func (d *DB) applyEach(ctx context.Context, open []Migration) ([]string, error) {
	var done []string
	for _, m := range open {
		if err := d.apply(ctx, m); err != nil {
			return done, fmt.Errorf("migration %s: %w", m.Name, err)
		}
		done = append(done, m.Name)
	}
	return done, nil
}

// prepare creates the migration table and, on PostgreSQL, the type blob.
func (d *DB) prepare(ctx context.Context) error {
	return d.Tx(ctx, func(tx Querier) error {
		if d.name == "postgres" {
			if _, err := tx.Exec(ctx, migrationLock); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, createBlobDomain); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)`)
		return err
	})
}

// migrationLock is an advisory lock: one node at a time changes the schema.
const migrationLock = `SELECT pg_advisory_xact_lock(7266447)`

// appliedMeanwhile waits for other migrating nodes, and reports whether one of them has applied the step.
func (d *DB) appliedMeanwhile(ctx context.Context, tx Querier, m Migration) (done bool, err error) {
	if d.name == "postgres" {
		if _, err := tx.Exec(ctx, migrationLock); err != nil {
			return false, err
		}
	}
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM migrations WHERE name = $1)`, m.Name).Scan(&done)
	return done, err
}

const createBlobDomain = `DO $$ BEGIN
	IF to_regtype('blob') IS NULL THEN CREATE DOMAIN blob AS bytea; END IF;
END $$`

func (d *DB) applied(ctx context.Context) (map[string]bool, error) {
	rows, err := d.Read(ctx).Query(ctx, `SELECT name FROM migrations`)
	if err != nil {
		if missingTable(err) {
			return nil, nil
		}
		return nil, err
	}
	defer rows.Close()
	done := map[string]bool{}
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		done[n] = true
	}
	return done, rows.Err()
}

func missingTable(err error) bool { return hasCode(err, "42P01", 1) }

const recordMigration = `INSERT INTO migrations (name, applied_at) VALUES ($1, $2)`

func (d *DB) apply(ctx context.Context, m Migration) error {
	return d.Tx(ctx, func(tx Querier) error {
		if done, err := d.appliedMeanwhile(ctx, tx, m); err != nil || done {
			return err
		}
		for _, s := range Split(m.SQL) {
			if _, err := tx.Exec(ctx, s); err != nil {
				return fmt.Errorf("%w in %s", err, s)
			}
		}
		_, err := tx.Exec(ctx, recordMigration, m.Name, time.Now().UnixMicro())
		return err
	})
}

// Split splits a file into statements, which end with a semicolon at the end of a line. Comment lines are dropped.
func Split(text string) []string {
	var out []string
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "--") {
			continue
		}
		b.WriteString(line)
		if strings.HasSuffix(strings.TrimSpace(line), ";") {
			out = append(out, strings.TrimSpace(b.String()))
			b.Reset()
		}
	}
	if s := strings.TrimSpace(b.String()); s != "" {
		out = append(out, s)
	}
	return out
}
