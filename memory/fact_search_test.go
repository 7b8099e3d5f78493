package memory_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"soniq/db"
	"soniq/db/dbtest"
	"soniq/memory"
	"soniq/op/optest"
)

func TestFactsAreFoundByTheirWordsAndMeaning(t *testing.T) {
	t.Parallel()
	docs, _ := evaluation(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		s := room(t, d, func(c *memory.Config) { c.Now = now })
		server := optest.New(t, d, s.Operations()...)
		add := func(text, more string) string {
			t.Helper()
			return server.Do(optest.Admin("org_a"), "POST", "/memory/callers/%2B14155550100/facts", `{"text":"`+text+`"`+more+`}`).Want(201).Text("id")
		}
		for _, doc := range docs[:5] {
			learn(t, s, d, "org_a", callOf(doc, "+14155550100", time.Now().Add(-time.Hour)))
		}
		first := func(org string, q memory.Query) (r memory.Result) {
			t.Helper()
			if all := search(t, s, org, q).Results; len(all) > 0 {
				r = all[0]
			}
			return r
		}
		if r := first("org_a", memory.Query{Text: "allergic to peanuts"}); r.Kind == memory.KindFact {
			t.Errorf("found %+v before it was written down", r)
		}
		peanuts := add("Is allergic to peanuts", "")
		boat := add("Owns a sailing boat", `,"expires_at":"`+now().Add(24*time.Hour).UTC().Format(time.RFC3339)+`"`)

		for _, q := range []memory.Query{{Text: "allergic to peanuts"}, {Text: "food allergies"}, {Text: "peanuts", Mode: memory.Keyword},
			{Text: "peanuts", Phone: "+1 415 555 0100"}, {Text: "peanuts", Kinds: []string{memory.KindFact}}} {
			r := first("org_a", q)
			if r.ID != peanuts || r.Kind != memory.KindFact || r.CallID != nil || r.Direction != nil || r.Phone != "+14155550100" || r.Text != "Is allergic to peanuts" {
				t.Errorf("%+v finds %+v", q, r)
			}
		}
		for _, q := range []memory.Query{{Text: "peanuts", Direction: "inbound"}, {Text: "peanuts", Tags: []string{"x"}}, {Text: "peanuts", Phone: "+14155550101"},
			{Text: "peanuts", Kinds: []string{memory.KindSummary}}} {
			if r := first("org_a", q); r.ID == peanuts {
				t.Errorf("%+v finds it", q)
			}
		}
		if r := first("org_b", memory.Query{Text: "peanuts"}); r.ID != "" {
			t.Errorf("another organisation finds %+v", r)
		}

		if r := first("org_a", memory.Query{Text: "yacht"}); r.ID != boat {
			t.Errorf("found %+v, want %s", r, boat)
		}
		ahead.Store(int64(25 * time.Hour))
		if r := first("org_a", memory.Query{Text: "sailing boat"}); r.ID == boat {
			t.Error("a fact is found that has expired")
		}
		err := d.Tx(ctx, func(tx db.Querier) error { _, err := s.EraseFacts(ctx, tx, "org_a", "+14155550100"); return err })
		if err != nil {
			t.Fatal(err)
		}
		if r := first("org_a", memory.Query{Text: "peanuts"}); r.ID == peanuts {
			t.Error("a fact is found that was erased")
		}
	})
}

// TestFactsOfBeforeAreFoundToo looks for a fact that was written down before searches knew facts.
func TestFactsOfBeforeAreFoundToo(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		s := room(t, d, nil)
		err := d.Tx(ctx, func(tx db.Querier) error {
			const q = `INSERT INTO memory_facts (org_id, phone, id, text, created_by, created_at) VALUES ('org_a', '+14155550100', 'mem_1', 'Is allergic to peanuts', 'usr_1', $1)`
			_, err := tx.Exec(ctx, q, db.At(time.Now()))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if all := search(t, s, "org_a", memory.Query{Text: "peanuts"}).Results; len(all) != 0 {
			t.Fatalf("found %+v at once", all)
		}
		for want := 1; want >= 0; want-- {
			if n, err := s.Reembed(ctx); err != nil || n != want {
				t.Fatalf("%d facts were embedded, %v, want %d", n, err, want)
			}
		}
		if all := search(t, s, "org_a", memory.Query{Text: "nuts"}).Results; len(all) != 1 || all[0].ID != "mem_1" || all[0].Matched != "semantic" {
			t.Errorf("found %+v", all)
		}
	})
}
