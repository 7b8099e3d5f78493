package db_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// table creates a small table for a test.
func table(t testing.TB, d *db.DB) {
	t.Helper()
	must(t, d.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, `CREATE TABLE things (id TEXT PRIMARY KEY, n INTEGER NOT NULL)`)
		return err
	}))
}

func put(tx db.Querier, id string, n int) error {
	_, err := tx.Exec(ctx, `INSERT INTO things (id, n) VALUES ($1, $2)`, id, n)
	return err
}

func count(t testing.TB, q db.Querier) (n int) {
	t.Helper()
	must(t, q.QueryRow(ctx, `SELECT count(*) FROM things`).Scan(&n))
	return n
}

var errWanted = errors.New("this one fails")

func TestTx_FailuresIsolated(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		var all sync.WaitGroup
		errs := make([]error, 300)
		for i := range errs {
			all.Go(func() {
				errs[i] = d.Tx(ctx, func(tx db.Querier) error {
					if err := put(tx, fmt.Sprint(i), i); err != nil {
						return err
					}
					switch i % 4 {
					case 1:
						return errWanted
					case 2:
						panic("in a transaction function")
					case 3: // an SQL error
						return put(tx, fmt.Sprint(i), i)
					}
					return nil
				})
			})
		}
		all.Wait()
		for i, err := range errs {
			good := [4]bool{err == nil, errors.Is(err, errWanted), err != nil &&
				strings.Contains(err.Error(), "panicked: in a transaction"), db.IsConflict(err)}
			if !good[i%4] {
				t.Errorf("function %d: %v", i, err)
			}
		}
		if n := count(t, d.Read(ctx)); n != 75 {
			t.Errorf("%d rows, want the 75 of those that did not fail", n)
		}
	})
}

// blockWriter blocks SQLite's writer until release is called. Functions queued meanwhile share a commit.
func blockWriter(d *db.DB) (release func()) {
	in, out, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		_ = d.Tx(ctx, func(db.Querier) error { close(in); <-out; return nil })
		close(done)
	}()
	<-in
	return func() { close(out); <-done }
}

func TestTx_GroupCommit(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	table(t, d)
	before := d.Stats()
	release := blockWriter(d)
	const many = 200
	var queued, all sync.WaitGroup
	queued.Add(many)
	for i := range many {
		all.Go(func() {
			queued.Done()
			if err := d.Tx(ctx, func(tx db.Querier) error { return put(tx, fmt.Sprint(i), i) }); err != nil {
				t.Error(err)
			}
		})
	}
	queued.Wait()
	release()
	all.Wait()
	after := d.Stats()
	if n := after.Transactions - before.Transactions; n != many+1 {
		t.Errorf("%d functions counted, want %d", n, many+1)
	}
	if n := after.Commits - before.Commits; n > many/4 {
		t.Errorf("%d commits for %d functions", n, many)
	}
}

// A failed commit returns its error to all of its functions, and the writer continues.
func TestTx_FailedCommit(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	must(t, d.Tx(ctx, func(tx db.Querier) error {
		if _, err := tx.Exec(ctx, `CREATE TABLE things (id TEXT PRIMARY KEY, n INTEGER NOT NULL)`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `CREATE TABLE parts (of_thing TEXT REFERENCES things (id) DEFERRABLE INITIALLY DEFERRED)`)
		return err
	}))
	release := blockWriter(d)
	errs := make(chan error, 2)
	go func() {
		errs <- d.Tx(ctx, func(tx db.Querier) error {
			_, err := tx.Exec(ctx, `INSERT INTO parts (of_thing) VALUES ($1)`, "nothing")
			return err
		})
	}()
	release()
	if err := <-errs; !db.IsForeignKey(err) {
		t.Errorf("err = %v, want a foreign key error", err)
	}
	must(t, d.Tx(ctx, func(tx db.Querier) error { return put(tx, "after", 1) }))
	if n := count(t, d.Read(ctx)); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestTx_NestedRollback(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		var told []string
		tell := func(tx db.Querier, s string) { db.OnCommit(tx, func() { told = append(told, s) }) }
		must(t, d.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
			tell(tx, "outer")
			if err := put(tx, "outer", 1); err != nil {
				return err
			}
			err := d.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
				tell(tx, "failed")
				if err := put(tx, "failed", 1); err != nil {
					return err
				}
				return d.Tx(ctx, func(tx db.Querier) error { _ = put(tx, "deeper", 1); panic("deep") })
			})
			if err == nil || !strings.Contains(err.Error(), "deep") {
				t.Errorf("inner err = %v", err)
			}
			return d.Tx(ctx, func(tx db.Querier) error { tell(tx, "good"); return put(tx, "good", 1) })
		}))
		if n := count(t, d.Read(ctx)); n != 2 {
			t.Errorf("%d rows, want outer and good", n)
		}
		if got := strings.Join(told, " "); got != "outer good" {
			t.Errorf("told %q after commit, want those that were committed", got)
		}
	})
}

func TestTx_OuterRollback(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		told := false
		err := d.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
			must(t, d.Tx(ctx, func(tx db.Querier) error { db.OnCommit(tx, func() { told = true }); return put(tx, "inner", 1) }))
			return errWanted
		})
		if !errors.Is(err, errWanted) || count(t, d.Read(ctx)) != 0 || told {
			t.Errorf("err %v, rows %d, told %v", err, count(t, d.Read(ctx)), told)
		}
	})
}

func TestRead_TransactionOfContext(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		must(t, d.TxContext(ctx, func(in context.Context, tx db.Querier) error {
			if err := put(tx, "a", 1); err != nil {
				return err
			}
			if n := count(t, d.Read(in)); n != 1 || !db.InTx(in) {
				t.Errorf("inside: %d rows", n)
			}
			if n := count(t, d.Read(db.Detached(in))); n != 0 || db.InTx(db.Detached(in)) {
				t.Errorf("outside: %d rows before the commit", n)
			}
			return nil
		}))
	})
}

func TestOnCommit_AfterVisible(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		seen := make(chan int, 1)
		must(t, d.Tx(ctx, func(tx db.Querier) error {
			db.OnCommit(tx, func() { seen <- count(t, d.Read(ctx)) })
			return put(tx, "a", 1)
		}))
		if n := <-seen; n != 1 {
			t.Errorf("the hook saw %d rows, want 1", n)
		}
	})
}

func TestTx_CanceledContext(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	table(t, d)
	release := blockWriter(d)
	gone, cancel := context.WithCancel(ctx)
	waiting := make(chan error, 1)
	go func() { waiting <- d.Tx(gone, func(tx db.Querier) error { return put(tx, "never", 1) }) }()
	cancel() // canceled before or after queueing: it does not run
	release()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want canceled", err)
	}
	running, cancel := context.WithCancel(ctx)
	must(t, d.Tx(running, func(tx db.Querier) error { cancel(); return put(tx, "done", 1) }))
	if n := count(t, d.Read(ctx)); n != 1 {
		t.Errorf("%d rows, want the one whose function had begun", n)
	}
}

func TestClose_FinishesAccepted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	d, err := db.Open(ctx, path)
	must(t, err)
	table(t, d)
	release := blockWriter(d)
	done := make(chan error, 1)
	go func() { done <- d.Tx(ctx, func(tx db.Querier) error { return put(tx, "accepted", 1) }) }()
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	release()
	accepted := <-done
	must(t, <-closed)
	if err := d.Tx(ctx, func(db.Querier) error { return nil }); !errors.Is(err, db.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
	again, err := db.Open(ctx, path)
	must(t, err)
	defer again.Close()
	want := 1
	if errors.Is(accepted, db.ErrClosed) {
		want = 0
	}
	if n := count(t, again.Read(ctx)); n != want {
		t.Errorf("%d rows on disk, the caller was told %v", n, accepted)
	}
}

func TestRead_NotBlockedByWriter(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	table(t, d)
	release := blockWriter(d)
	defer release()
	soon, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var n int
	must(t, d.Read(ctx).QueryRow(soon, `SELECT count(*) FROM things`).Scan(&n))
}

func TestRead_ReadOnly(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	table(t, d)
	if err := put(d.Read(ctx), "a", 1); err == nil {
		t.Error("a reader wrote")
	}
}

// Any number of transactions may read outside themselves at once without a deadlock.
func TestTx_ReadOutsideNoDeadlock(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		limited, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		const many = 60
		failed := make(chan error, many)
		for i := range many {
			go func() {
				failed <- d.Tx(limited, func(tx db.Querier) error {
					if err := put(tx, fmt.Sprint(i), i); err != nil {
						return err
					}
					var n int
					return d.Read(limited).QueryRow(limited, `SELECT COUNT(*) FROM things`).Scan(&n)
				})
			}()
		}
		for range many {
			must(t, <-failed)
		}
	})
}
