package memory_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

func TestFacts_ExpiryAndErasure(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		s := newService(t, d, func(c *memory.Config) { c.Clock = clock.Func(now) })
		server := optest.New(t, d, s.Operations()...)
		add := func(phone, text, more string) *optest.Answer {
			t.Helper()
			return server.Do(optest.Admin("org_a"), "POST", "/memory/callers/"+phone+"/facts", `{"text":"`+text+`"`+more+`}`)
		}
		tomorrow := now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
		stays := add("%2B14155550100", "Prefers mornings", "").Want(201).Text("id")
		passes := add("%2B14155550100", "On holiday", `,"expires_at":"`+tomorrow+`"`).Want(201).Text("id")
		other := add("%2B14155550199", "Is reached at +14155550100 too", "").Want(201).Text("id")
		kept := add("%2B14155550199", "Has a dog", "").Want(201).Text("id")
		add("nobody", strings.Repeat("é", 501), `,"expires_at":"2020-01-01"`).Want(422).
			Refused("validation_failed", "phone invalid_e164", "text invalid_length", "expires_at out_of_range")
		add("%2B14155550100", " ", "").Want(422).Refused("validation_failed", "text invalid_length")

		told := func(want ...string) {
			t.Helper()
			all := server.Do(optest.Admin("org_a"), "GET", "/memory/callers/%2B14155550100", nil).Want(200).At("facts").([]any)
			var ids []string
			for _, f := range all {
				ids = append(ids, f.(map[string]any)["id"].(string))
			}
			if strings.Join(ids, " ") != strings.Join(want, " ") {
				t.Errorf("told %v, want %v", ids, want)
			}
		}
		get := func(org, id string, status int) *optest.Answer {
			t.Helper()
			return server.Do(optest.Admin(org), "GET", "/memory/items/"+id, nil).Want(status)
		}
		told(passes, stays)
		if a := get("org_a", stays, 200); a.Text("kind") != "fact" || a.Text("phone") != "+14155550100" || a.Text("text") != "Prefers mornings" || a.Text("source") == "" {
			t.Errorf("got %s", a.Bytes)
		}
		get("org_b", stays, 404)
		if f, err := s.Facts(ctx, "org_b", "+14155550100"); err != nil || len(f) != 0 {
			t.Errorf("another organisation is told %v, %v", f, err)
		}

		ahead.Store(int64(25 * time.Hour))
		told(stays)
		get("org_a", passes, 404)
		if n, err := s.DeleteExpiredFacts(ctx, now()); err != nil || n != 1 {
			t.Errorf("%d facts were swept, %v", n, err)
		}

		erase := func(org string) (counted, erased int) {
			t.Helper()
			err := d.Tx(ctx, func(tx db.Querier) (err error) {
				if counted, err = s.CountFacts(ctx, tx, org, "+14155550100"); err == nil {
					erased, err = s.EraseFacts(ctx, tx, org, "+14155550100")
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return counted, erased
		}
		if counted, erased := erase("org_b"); counted+erased != 0 {
			t.Errorf("another organisation erased %d of %d", erased, counted)
		}
		if counted, erased := erase("org_a"); counted != 2 || erased != 2 {
			t.Errorf("%d of %d facts were erased, want 2", erased, counted)
		}
		told()
		get("org_a", other, 404)
		get("org_a", kept, 200)
	})
}

func TestFacts_LimitPerNumber(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	server := optest.New(t, d, newService(t, d, nil).Operations()...)
	for range 100 {
		server.Do(optest.Admin("org_a"), "POST", "/memory/callers/%2B14155550100/facts", `{"text":"x"}`).Want(201)
	}
	server.Do(optest.Admin("org_a"), "POST", "/memory/callers/%2B14155550100/facts", `{"text":"x"}`).Want(403).Refused("plan_limit")
	server.Do(optest.Admin("org_a"), "POST", "/memory/callers/%2B14155550101/facts", `{"text":"x"}`).Want(201)
}

func TestItems_FullPassage(t *testing.T) {
	t.Parallel()
	docs, _ := evaluation(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newService(t, d, nil)
		server := optest.New(t, d, s.Operations()...)
		indexCall(t, s, d, "org_a", callOf(docs[0], "+14155550100", time.Now().Add(-time.Hour)))
		found := search(t, s, "org_a", memory.Query{Text: docs[0].Turns[0].Text}).Results
		if len(found) == 0 {
			t.Fatal("nothing was found")
		}
		a := server.Do(optest.Admin("org_a"), "GET", "/memory/items/"+found[0].ID, nil).Want(200)
		if a.Text("call_id") != *found[0].CallID || a.Text("kind") != found[0].Kind || !strings.Contains(a.Text("text"), docs[0].Turns[0].Text) {
			t.Errorf("got %s for %+v", a.Bytes, found[0])
		}
		server.Do(optest.Admin("org_b"), "GET", "/memory/items/"+found[0].ID, nil).Want(404)
	})
}
