package op_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op"
)

const key = "Idempotency-Key: k1"

func body(name string) map[string]any { return map[string]any{"name": name} }

func TestIdempotency_Replay(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, api, p := newThings(t, d)
		for i, path := range []string{"/things", "/things/call"} {
			first := api.Do(p, "POST", path, body("good"), key).Want(201)
			again := api.Do(p, "POST", path, body("good"), key).Want(201)
			if string(first.Bytes) != string(again.Bytes)+"\n" &&
				strings.TrimSpace(string(first.Bytes)) != strings.TrimSpace(string(again.Bytes)) {
				t.Errorf("%s: first %s, again %s", path, first.Bytes, again.Bytes)
			}
			for _, h := range []string{"Location", "ETag", "Content-Type"} {
				if first.Header.Get(h) != again.Header.Get(h) || first.Header.Get(h) == "" {
					t.Errorf("%s: %s first %q, again %q", path, h, first.Header.Get(h), again.Header.Get(h))
				}
			}
			if first.Header.Get("Idempotency-Replayed") != "" || again.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s: replayed first %q, again %q", path, first.Header.Get("Idempotency-Replayed"), again.Header.Get("Idempotency-Replayed"))
			}
			if n := rows(t, d, "things"); n != i+1 {
				t.Errorf("%s: %d things", path, n)
			}
		}
	})
}

func TestIdempotency_DeleteReplay(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	api.Do(p, "DELETE", "/things/x", nil, key).Want(204)
	if a := api.Do(p, "DELETE", "/things/x", nil, key).Want(204); a.Header.Get("Idempotency-Replayed") != "true" || len(a.Bytes) != 0 {
		t.Errorf("%v %s", a.Header, a.Bytes)
	}
}

func TestIdempotency_KeyReused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, api, p := newThings(t, d)
		for _, path := range []string{"/things", "/things/call"} {
			first := api.Do(p, "POST", path, body("good"), key).Want(201)
			api.Do(p, "POST", path, body("other"), key).Want(422).Refused("idempotency_key_reused")
			again := api.Do(p, "POST", path, body("good"), key).Want(201)
			if first.Text("id") != again.Text("id") {
				t.Errorf("%s: the refusal took the place of the first answer: %s", path, again.Bytes)
			}
		}
	})
}

func TestIdempotency_KeyScope(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	_, api, p := newThings(t, d)
	api.Do(p, "POST", "/things", body("good"), key).Want(201)
	api.Do(p, "POST", "/things/call", body("good"), key).Want(201)
	p.KeyID = "key_other"
	api.Do(p, "POST", "/things", body("good"), key).Want(201)
	if n := rows(t, d, "things"); n != 3 {
		t.Errorf("%d things, want 3", n)
	}
	api.Do(p, "POST", "/things", body("good"), "Idempotency-Key: "+strings.Repeat("x", 256)).Want(422).
		Refused("validation_failed", "Idempotency-Key too_long")
}

func TestIdempotency_PermanentErrorsReplayed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, api, p := newThings(t, d)
		for _, path := range []string{"/things", "/things/call"} {
			s.then(func(context.Context) error { return op.State("it has ended", "completed", "note") })
			first := api.Do(p, "POST", path, body("good"), key).Want(409).Refused("invalid_state")
			s.then(nil)
			again := api.Do(p, "POST", path, body("good"), key).Want(409).Refused("invalid_state")
			if again.Text("current_status") != first.Text("current_status") || again.Header.Get("Content-Type") != "application/problem+json" ||
				again.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s: %s %v", path, again.Bytes, again.Header)
			}
		}
	})
}

func TestIdempotency_TransientErrorsNotStored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, api, p := newThings(t, d)
		for i, path := range []string{"/things", "/things/call"} {
			for _, err := range []error{errors.New("disk"), op.Unavailable("overloaded", "later", "1"), op.Fail("rate_limited", "slow down"), op.Fail("plan_limit", "full")} {
				s.then(func(context.Context) error { return err })
				if a := api.Do(p, "POST", path, body("good"), key); a.Status < 400 {
					t.Fatalf("%s: %d", path, a.Status)
				}
			}
			s.then(nil)
			api.Do(p, "POST", path, body("good"), key).Want(201)
			want := 1
			if i == 1 { // with side effects, the row written before the error remains
				want = 1 + 4 + 1
			}
			if n := rows(t, d, "things"); n != want {
				t.Errorf("%s: %d things, want %d", path, n, want)
			}
		}
	})
}

func TestIdempotency_InProgress(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, api, p := newThings(t, d)
		running, finish := make(chan struct{}), make(chan struct{})
		s.then(func(context.Context) error { close(running); <-finish; return nil })
		first := make(chan string)
		go func() { first <- api.Do(p, "POST", "/things/call", body("good"), key).Text("id") }()
		<-running
		a := api.Do(p, "POST", "/things/call", body("good"), key).Want(409).Refused("idempotency_in_progress")
		if a.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		s.then(nil)
		close(finish)
		id := <-first
		if again := api.Do(p, "POST", "/things/call", body("good"), key).Want(201); id == "" || again.Text("id") != id {
			t.Errorf("first %q, again %s", id, again.Bytes)
		}
	})
}

func TestIdempotency_ConcurrentRequests(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, api, p := newThings(t, d)
		var all sync.WaitGroup
		statuses := make([]int, 20)
		for i := range statuses {
			all.Go(func() { statuses[i] = api.Do(p, "POST", "/things", body("good"), key).Status })
		}
		all.Wait()
		if n := rows(t, d, "things"); n != 1 {
			t.Errorf("%d things, want 1 (answers %v)", n, statuses)
		}
		for _, s := range statuses {
			if s != 201 {
				t.Errorf("answers %v, want 201 for all", statuses)
				break
			}
		}
	})
}

// After a crash between effect and response, both or neither are committed.
func TestIdempotency_CrashIsAtomic(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, api, p := newThings(t, d)
		s.then(func(context.Context) error { panic("the process dies here") })
		if a := api.Do(p, "POST", "/things", body("good"), key); a.Status != 500 {
			t.Fatalf("%d %s", a.Status, a.Bytes)
		}
		if things, keys := rows(t, d, "things"), rows(t, d, "idempotency"); things != 0 || keys != 0 {
			t.Errorf("%d things and %d keys, want neither", things, keys)
		}
		s.then(nil)
		api.Do(p, "POST", "/things", body("good"), key).Want(201)
		if things, keys, lines := rows(t, d, "things"), rows(t, d, "idempotency"), rows(t, d, "audit"); things != 1 || keys != 1 ||
			lines != 1 {
			t.Errorf("%d things, %d keys, %d audit lines, want one of each", things, keys, lines)
		}
	})
}

// A crash during a side effect leaves a key in progress. Another request takes it over after a while.
func TestIdempotency_AbandonedKeyTakenOver(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, api, p := newThings(t, d)
		running, finish := make(chan struct{}), make(chan struct{})
		s.then(func(context.Context) error { close(running); <-finish; return nil })
		done := make(chan struct{})
		go func() { api.Do(p, "POST", "/things/call", body("good"), key); close(done) }()
		<-running
		s.then(nil)
		age := func(by time.Duration) {
			err := d.Tx(t.Context(), func(tx db.Querier) error {
				_, err := tx.Exec(t.Context(), `UPDATE idempotency SET created_at = $1`, db.At(time.Now().Add(-by)))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		age(9 * time.Minute)
		api.Do(p, "POST", "/things/call", body("good"), key).Want(409).Refused("idempotency_in_progress")
		age(11 * time.Minute)
		api.Do(p, "POST", "/things/call", body("good"), key).Want(201)
		close(finish)
		<-done
	})
}

func TestIdempotency_InvalidInputTakesNoKey(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	api.Do(p, "POST", "/things", body("x"), key).Want(422).Refused("validation_failed")
	api.Do(p, "POST", "/things", body("good"), key).Want(201)
	p.Scopes = []access.Scope{access.CallsRead}
	api.Do(p, "POST", "/things", body("good"), key).Want(403) // also for a stored response
}

// A refusal by the operation takes no key either: the corrected request may have it.
func TestIdempotency_RefusalTakesNoKey(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, api, p := newThings(t, d)
		for _, path := range []string{"/things", "/things/call"} {
			s.then(func(context.Context) error { return op.Invalid(op.Field("name", "invalid", "is no good")) })
			api.Do(p, "POST", path, body("other"), key).Want(422).Refused("validation_failed")
			s.then(nil)
			if a := api.Do(p, "POST", path, body("good"), key).Want(201); a.Header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s: %v", path, a.Header)
			}
		}
	})
}
