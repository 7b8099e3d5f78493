package readiness

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// newStorage returns a Storage whose clock moves on by two seconds each time it is asked, so that no result is reused.
func newStorage(d *db.DB, data string) *Storage {
	now := time.Now()
	return New(Config{DB: d, Data: data, Log: slog.New(slog.DiscardHandler), Clock: clock.Func(func() time.Time {
		now = now.Add(2 * time.Second)
		return now
	})})
}

// wants fails unless the error has the words; "" means no error.
func wants(t *testing.T, s *Storage, words string) {
	t.Helper()
	err := s.Check(context.Background())
	if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
		t.Errorf("%v, want %q", err, words)
	}
}

// A database that can be read and not written is not ready.
//
// https://github.com/getnora-io/nora/issues/629, https://github.com/rustfs/rustfs/issues/2658
func TestCheck_ReadOnlyDatabase(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newStorage(d, t.TempDir())
		wants(t, s, "")
		if d.Name() == "sqlite" {
			return
		}
		setReadOnly(t, d, true)
		wants(t, s, "read-only")
		setReadOnly(t, d, false)
		wants(t, s, "")
	})
}

// setReadOnly changes the default of new transactions, and ends the connections that have another one.
func setReadOnly(t *testing.T, d *db.DB, on bool) {
	t.Helper()
	var name string
	if err := d.Read(t.Context()).QueryRow(t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	err := d.Tx(t.Context(), func(tx db.Querier) error {
		if _, err := tx.Exec(t.Context(), `SET TRANSACTION READ WRITE`); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), fmt.Sprintf(`ALTER DATABASE %q SET default_transaction_read_only = %v`, name, on))
		return err
	})
	if err == nil {
		_, err = d.Read(t.Context()).Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A full disk, and a folder that is gone, are reasons. An error of another transaction counts for a while.
func TestCheck_DiskAndOtherTransactions(t *testing.T) {
	d := dbtest.SQLite(t)
	dir := t.TempDir()
	s := newStorage(d, filepath.Join(dir, "gone"))
	wants(t, s, "cannot be written")
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=300k"); err != nil {
		t.Skip("needs the right to mount:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	s.cfg.Data = dir
	wants(t, s, "")
	if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 100<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, s, "the disk of the data folder is full")
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if free, size := Free(dir); free == 0 || size < free || size > 400<<10 {
		t.Errorf("%d of %d bytes are free", free, size)
	}
}
