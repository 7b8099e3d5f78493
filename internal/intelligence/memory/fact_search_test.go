package memory_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

func TestSearch_Facts(t *testing.T) {
	t.Parallel()
	docs, _ := evaluation(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		s := newService(t, d, func(c *memory.Config) { c.Clock = clock.Func(now) })
		server := optest.New(t, d, s.Operations()...)
		add := func(text, more string) string {
			t.Helper()
			return server.Do(optest.Admin("org_a"), "POST", "/memory/callers/%2B14155550100/facts", `{"text":"`+text+`"`+more+`}`).Want(201).Text("id")
		}
		for _, doc := range docs[:5] {
			indexCall(t, s, d, "org_a", callOf(doc, "+14155550100", time.Now().Add(-time.Hour)))
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
			if r.ID != peanuts || r.Kind != memory.KindFact || r.CallID != nil || r.Direction != nil || r.Phone != "+14155550100" ||
				r.Text != "Is allergic to peanuts" {
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

// A fact that was inserted before facts were searchable is found after Reembed.
func TestReembed_OldFactsBecomeSearchable(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		s := newService(t, d, nil)
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

func TestSearch_NotesAndMessages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		s := newService(t, d, nil)
		server := optest.New(t, d, s.Operations()...)
		tell := func(f func(tx db.Querier) error) {
			t.Helper()
			if err := d.Tx(ctx, f); err != nil {
				t.Fatal(err)
			}
		}
		first := func(q memory.Query) (r memory.Result) {
			t.Helper()
			if all := search(t, s, "org_a", q).Results; len(all) > 0 {
				r = all[0]
			}
			return r
		}
		note := memory.TextEntry{Kind: memory.KindNote, Of: "note_01J00000000000000000000001", Phone: "+14155550100", CallID: "call_1", Text: "Wants the wheelchair ramp", By: "usr_1", At: time.Now()}
		text := memory.TextEntry{Kind: memory.KindSMS, Of: "sms_01J00000000000000000000002", Phone: "+14155550100", Text: "My parcel is soaked", At: time.Now()}
		for range 2 { // an entry that exists is not changed
			tell(func(tx db.Querier) error {
				if err := s.AddText(ctx, tx, "org_a", note); err != nil {
					return err
				}
				return s.AddText(ctx, tx, "org_a", text)
			})
		}
		if r := first(memory.Query{Text: "wheelchair", Kinds: []string{memory.KindNote}}); r.ID != "mem_01J00000000000000000000001" || r.Kind != memory.KindNote ||
			r.CallID == nil || *r.CallID != "call_1" || r.MessageID != nil {
			t.Errorf("the note is %+v", r)
		}
		if r := first(memory.Query{Text: "soaked package", Phone: "+14155550100"}); r.MessageID == nil || *r.MessageID != text.Of ||
			r.CallID != nil || r.Kind != memory.KindSMS {
			t.Errorf("the message is %+v", r)
		}
		if all := search(t, s, "org_a", memory.Query{Text: "wheelchair ramp", Kinds: []string{memory.KindNote}}).Results; len(all) != 1 {
			t.Errorf("found %+v, want one", all)
		}
		if facts, err := s.Facts(ctx, "org_a", "+14155550100"); err != nil || len(facts) != 0 {
			t.Errorf("facts %+v, %v", facts, err)
		}
		item := server.Do(optest.Admin("org_a"), "GET", "/memory/items/mem_01J00000000000000000000001", "").Want(200)
		if item.Text("kind") != "note" || item.Text("call_id") != "call_1" || item.Text("source") != "user" {
			t.Errorf("the item is %s", item.Body)
		}
		tell(func(tx db.Querier) error { return s.DeleteText(ctx, tx, "org_a", text.Of) })
		tell(func(tx db.Querier) error { return s.DeleteCallNotes(ctx, tx, "org_a", "call_1") })
		for _, q := range []string{"wheelchair", "soaked"} {
			if r := first(memory.Query{Text: q}); r.ID != "" {
				t.Errorf("%+v is found when it is forgotten", r)
			}
		}
	})
}
