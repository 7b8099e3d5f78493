package db_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

func TestMigrate_OnceInOrder(t *testing.T) {
	t.Parallel()
	addresses := []string{filepath.Join(t.TempDir(), "x.db")}
	if p := os.Getenv("SONIQ_TEST_POSTGRES"); p != "" {
		addresses = append(addresses, dbtest.Postgres(t, p))
	}
	for _, address := range addresses {
		d, err := db.Open(ctx, address)
		must(t, err)
		defer d.Close()
		all, err := db.Migrations()
		must(t, err)
		open, err := d.Pending(ctx)
		must(t, err)
		if len(open) != len(all) || !slices.IsSortedFunc(open, func(a, b db.Migration) int {
			if a.Name < b.Name {
				return -1
			}
			return 1
		}) {
			t.Errorf("%d of %d pending", len(open), len(all))
		}
		done, err := d.Migrate(ctx)
		must(t, err)
		again, err := d.Migrate(ctx)
		must(t, err)
		if len(done) != len(all) || len(again) != 0 {
			t.Errorf("%s: applied %d, then %d; want %d, then none", d.Name(), len(done), len(again), len(all))
		}
	}
}

func TestMigrate_ConcurrentNodes(t *testing.T) {
	t.Parallel()
	p := os.Getenv("SONIQ_TEST_POSTGRES")
	if p == "" {
		t.Skip("SONIQ_TEST_POSTGRES is not set; SQLite has one process")
	}
	address := dbtest.Postgres(t, p)
	var nodes sync.WaitGroup
	for range 3 {
		nodes.Go(func() {
			d, err := db.Open(ctx, address)
			if err != nil {
				t.Error(err)
				return
			}
			defer d.Close()
			if _, err := d.Migrate(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	nodes.Wait()
}

func TestSplit_AtEndOfLine(t *testing.T) {
	t.Parallel()
	got := db.Split("-- a comment; with a semicolon\nCREATE TABLE a (\n\tx TEXT DEFAULT ';'\n);\n\nCREATE INDEX b ON a (x);\nSELECT 1")
	want := []string{"CREATE TABLE a (\n\tx TEXT DEFAULT ';'\n);", "CREATE INDEX b ON a (x);", "SELECT 1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
