package contact_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// source returns a connected system.
func source(name string, priority int, ask func(context.Context, contact.Query) ([]contact.Record, error)) contact.Source {
	return contact.Source{ID: "crm_" + name, Name: name, Provider: "http", Priority: priority, Live: searcher(ask)}
}

func returning(all ...contact.Record) func(context.Context, contact.Query) ([]contact.Record, error) {
	return func(context.Context, contact.Query) ([]contact.Record, error) { return all, nil }
}

// hanging returns a system that answers when the test releases it.
func hanging(release <-chan struct{}, r contact.Record) func(context.Context, contact.Query) ([]contact.Record, error) {
	return func(ctx context.Context, _ contact.Query) ([]contact.Record, error) {
		select {
		case <-release:
			return []contact.Record{r}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// noWait makes lookups return without waiting for systems. limits returns the waits they would have had.
func (h *fixture) noWait() (limits func() []time.Duration) {
	var mu sync.Mutex
	var all []time.Duration
	h.fakes.after = func(limit time.Duration) <-chan time.Time {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, limit)
		up := make(chan time.Time)
		close(up)
		return up
	}
	return func() []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return slices.Compact(slices.Clone(all))
	}
}

// connect sets the sources of the organisation.
func (h *fixture) connect(own int, all ...contact.Source) {
	all = append(all, contact.Source{ID: contact.InternalID, Name: "Contacts", Provider: "internal", Priority: own})
	slices.SortStableFunc(all, func(a, b contact.Source) int { return a.Priority - b.Priority })
	h.fakes.sources = all
	h.InvalidateOrg(h.org)
}

// Ten thousand numbers in five spellings: each is found by the E.164 number of a caller.
func TestLookup_TenThousandNumbersFiveFormats(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		formats := []func(n int) string{
			func(n int) string { return fmt.Sprintf("+4420794%05d", n) },
			func(n int) string { return fmt.Sprintf("(020) 794%01d %04d", n/10000, n%10000) },
			func(n int) string { return fmt.Sprintf("004420794%05d", n) },
			func(n int) string { return fmt.Sprintf("020-794%05d ext. 12", n) },
			func(n int) string { return fmt.Sprintf("+44 (0)20 794%01d-%04d", n/10000, n%10000) },
		}
		ctx := context.Background()
		round, err := h.NewRound(ctx, h.org, "crm_list")
		if err != nil {
			t.Fatal(err)
		}
		const people = 10_000
		for i := range people {
			r := contact.Record{ExternalID: fmt.Sprint(i), Name: fmt.Sprintf("Person %d", i), Phones: []string{formats[i%5](i)}}
			if err := round.Add(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := round.Finish(ctx); n != people || err != nil {
			t.Fatalf("%d people, %v", n, err)
		}
		h.connect(0, contact.Source{ID: "crm_list", Name: "List", Priority: 50})
		kinds := []string{"exact", "national", "exact", "possible", "exact"}
		missing := 0
		for i := range people {
			if i%50 >= 5 && os.Getenv("SONIQ_SOAK") == "" {
				continue
			}
			a := h.lookup(fmt.Sprintf("+4420794%05d", i))
			if a.Status != 200 || a.Text("name") != fmt.Sprintf("Person %d", i) || a.Text("match") != kinds[i%5] || a.Text("source") != "List" {
				if missing++; missing < 5 {
					t.Errorf("%s: %d %s", formats[i%5](i), a.Status, a.Bytes)
				}
			}
		}
		if missing > 0 {
			t.Errorf("%d of %d not found", missing, people)
		}
	})
}

// A round replaces the round before: a changed record is found by its new number only, of duplicates the last counts,
// and a missing record is deleted.
func TestRound_ReplacesPrevious(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.connect(0, contact.Source{ID: "crm_list", Name: "List", Priority: 50})
		tell := func(all ...contact.Record) {
			t.Helper()
			round, err := h.NewRound(context.Background(), h.org, "crm_list")
			for _, x := range all {
				err = errors.Join(err, round.Add(context.Background(), x))
			}
			if n, finished := round.Finish(context.Background()); n != len(all) || errors.Join(err, finished) != nil {
				t.Fatalf("%d of %d, %v", n, len(all), errors.Join(err, finished))
			}
		}
		person := func(id, name, phone string) contact.Record {
			return contact.Record{ExternalID: id, Name: name, Phones: []string{phone}}
		}
		found := func(phone, want string) {
			t.Helper()
			if a := h.lookup(phone); a.Text("name") != want {
				t.Errorf("%s is %d %s, want %q", phone, a.Status, a.Bytes, want)
			}
		}
		tell(person("1", "Same", "+442079460011"), person("2", "Moved", "+442079460012"), person("3", "Gone", "+442079460013"))
		tell(person("1", "Same", "+442079460011"), person("2", "Moved", "+442079460022"), person("4", "First", "+442079460014"),
			person("4", "Last", "+442079460024"))
		found("+442079460011", "Same")
		found("+442079460012", "")
		found("+442079460022", "Moved")
		found("+442079460013", "")
		found("+442079460014", "")
		found("+442079460024", "Last")
	})
}

func TestLookup_WithoutAreaCodeIsPossible(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		round, _ := h.NewRound(context.Background(), h.org, "crm_list")
		_ = round.Add(context.Background(), contact.Record{ExternalID: "1", Name: "Local", Phones: []string{"7946 0018"}})
		if _, err := round.Finish(context.Background()); err != nil {
			t.Fatal(err)
		}
		h.connect(0, contact.Source{ID: "crm_list", Name: "List", Priority: 50})
		if a := h.lookup("+442079460018").Want(200); a.Text("match") != "possible" || a.Text("name") != "Local" || a.At("confidence") != 0.5 {
			t.Errorf("got %s", a.Bytes)
		}
		h.lookup("+442079460019").Want(404)
		id := h.do("POST", "/contacts", `{"first_name":"Exact","phones":[{"number":"+442079460018"}]}`).Want(201).Text("id")
		if a := h.lookup("+442079460018").Want(200); a.Text("contact_id") != id || a.Text("match") != "exact" {
			t.Errorf("got %s", a.Bytes)
		}
		if a := h.lookup("7946 0018").Want(200); a.Text("match") != "possible" || len(a.At("alternatives").([]any)) != 1 {
			t.Errorf("asked without area code: %s", a.Bytes)
		}
		if a := h.do("GET", "/contacts/lookup?phone=+442079460018", nil).Want(200); a.Text("phone") != "+442079460018" { // a + that was not encoded
			t.Errorf("got %s", a.Bytes)
		}
	})
}

// Every spelling of a telephone finds its contact, also after a change. Numbers that differ otherwise do not.
// https://github.com/chatwoot/chatwoot/issues/14174
func TestLookup_SpellingsOfOneTelephone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		for _, n := range [][2]string{{"+525512345678", "+5215512345678"}, {"+5491123456789", "+541123456789"}, {"+5511987654321", "+551187654321"}} {
			for i, stored := range n {
				h.lookup(n[0]).Want(404)
				h.lookup(n[1]).Want(404)
				id := h.do("POST", "/contacts", `{"first_name":"A","phones":[{"number":"`+stored+`"}]}`).Want(201).Text("id")
				for _, asked := range n {
					if a := h.lookup(asked).Want(200); a.Text("contact_id") != id || a.Text("match") != "exact" {
						t.Errorf("%s, stored as %s: %s", asked, stored, a.Bytes)
					}
					if a := h.do("GET", "/contacts?phone="+url.QueryEscape(asked), nil).Want(200); a.Text("data.0.id") != id {
						t.Errorf("list of %s: %s", asked, a.Bytes)
					}
				}
				if !contact.SameNumber(n[0], n[1]) || contact.SameNumber(n[i], "+12025550100") {
					t.Errorf("%s and %s are not one telephone", n[0], n[1])
				}
				h.do("DELETE", "/contacts/"+id, nil).Want(204)
			}
		}
	})
}

func TestCache_InvalidatedByWrites(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.lookup("+442079460018").Want(404)
		id := h.do("POST", "/contacts", `{"first_name":"Ada","phones":[{"number":"+442079460018"}]}`).Want(201).Text("id")
		if a := h.lookup("+442079460018").Want(200); a.At("cached") != false {
			t.Errorf("the miss before was kept: %s", a.Bytes)
		}
		if a := h.lookup("020 7946 0018").Want(200); a.At("cached") != true || a.At("complete") != true {
			t.Errorf("the second is not cached: %s", a.Bytes)
		}
		if a := h.lookup("+442079460018", "&fresh=true").Want(200); a.At("cached") != false {
			t.Errorf("fresh is cached: %s", a.Bytes)
		}
		h.do("PATCH", "/contacts/"+id, `{"first_name":"Augusta"}`).Want(200)
		if a := h.lookup("+442079460018").Want(200); a.Text("name") != "Augusta" {
			t.Errorf("an old name: %s", a.Bytes)
		}
		other := h.do("POST", "/contacts", `{"first_name":"B","phones":[{"number":"+442079460099"}]}`).Want(201).Text("id")
		h.lookup("+442079460099").Want(200)
		h.do("POST", "/contacts/"+id+"/merge", `{"from_id":"`+other+`"}`).Want(200)
		if a := h.lookup("+442079460099").Want(200); a.Text("contact_id") != id {
			t.Errorf("after the merge: %s", a.Bytes)
		}
		h.do("DELETE", "/contacts/"+id, nil).Want(204)
		h.lookup("+442079460018").Want(404)
	})
}

func TestLookup_PublishedFieldOrder(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.do("POST", "/contacts", `{"first_name":"Ada","company":"Co","phones":[{"number":"+442079460018"}],"emails":[{"value":"ada@example.com"}]}`).Want(201)
	a := h.lookup("+442079460018").Want(200)
	if !strings.HasPrefix(string(a.Bytes), `{"name":"Ada","company":"Co","source":"Contacts","lookup_ms":`) {
		t.Errorf("got %s", a.Bytes)
	}
	if e := h.do("GET", "/contacts/lookup?email=ADA%40example.com", nil).Want(200); e.Text("name") != "Ada" || e.Text("match") != "exact" {
		t.Errorf("by e-mail %s", e.Bytes)
	}
	n := h.lookup("+442079460019").Want(404).Refused("contact_not_found")
	if n.At("lookup_ms") == nil || n.Text("sources.0.source") != "Contacts" || n.Text("sources.0.status") != "miss" {
		t.Errorf("nobody: %s", n.Bytes)
	}
	h.do("GET", "/contacts/lookup", nil).Refused("validation_failed", "phone required")
	h.do("GET", "/contacts/lookup?phone=%2B442079460018&email=a%40b.c", nil).Refused("validation_failed", "email ambiguous")
	h.lookup("x").Refused("validation_failed", "phone invalid_e164")
	h.lookup("+442079460018", "&timeout_ms=49").Want(400)
}

// People open the address of a record. A connected system determines it, so only web addresses are shown.
func TestLookup_URLIsWebAddress(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	for given, want := range map[string]string{"https://crm.example/p/1": "https://crm.example/p/1", "javascript:alert(1)": "", "data:text/html,x": ""} {
		h.connect(500, source("a", 1, returning(contact.Record{ExternalID: "1", Name: "Ada", URL: given, Phones: []string{"+442079460018"}})))
		if a := h.lookup("+442079460018", "&timeout_ms=2000").Want(200); a.Text("url") != want {
			t.Errorf("%s: %q", given, a.Text("url"))
		}
	}
}

func TestLookup_BestMatchFirst(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	now := time.Now()
	rec := func(name, phone string, age time.Duration) contact.Record {
		return contact.Record{ExternalID: name, Name: name, Phones: []string{phone}, UpdatedAt: now.Add(-age)}
	}
	for _, c := range []struct {
		name string
		all  []contact.Source
		want string
	}{
		{"exact before national", []contact.Source{source("a", 1, returning(rec("n", "020 7946 0018", 0))), source("b", 9, returning(rec("e", "+442079460018", 0)))}, "e n"},
		{"priority", []contact.Source{source("a", 2, returning(rec("x", "+442079460018", 0))), source("b", 1, returning(rec("y", "+442079460018", time.Hour)))}, "y"},
		{"the newest of equals", []contact.Source{source("a", 1, returning(rec("x", "+442079460018", time.Hour))), source("b", 1, returning(rec("y", "+442079460018", 0)))}, "y x"},
		{"a liar is not believed", []contact.Source{source("a", 1, returning(rec("liar", "+442079460999", 0))), source("b", 2, returning(rec("y", "00442079460018", 0)))}, "y"},
		{"one that tells no number is possible", []contact.Source{source("a", 1, returning(contact.Record{ExternalID: "q", Name: "q"})), source("b", 2, returning(rec("y", "+442079460018", 0)))}, "y q"},
	} {
		h.connect(500, c.all...)
		a := h.lookup("+442079460018", "&timeout_ms=2000").Want(200)
		got := a.Text("name")
		for i := range len(a.At("alternatives").([]any)) {
			got += " " + a.Text(fmt.Sprintf("alternatives.%d.name", i))
		}
		if got != c.want && !strings.HasPrefix(got, c.want+" ") && !(c.name == "priority" && strings.HasPrefix(got, "y")) {
			t.Errorf("%s: got %q, want %q: %s", c.name, got, c.want, a.Bytes)
		}
	}
}

func TestLookup_HangingSystemTimeout(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	release := make(chan struct{})
	h.connect(900, source("slow", 1, hanging(release, contact.Record{ExternalID: "1", Name: "Slow", Phones: []string{"+442079460018"}})),
		source("dead", 2, func(context.Context, contact.Query) ([]contact.Record, error) {
			return nil, errors.New("connection refused")
		}),
		source("quick", 3, returning(contact.Record{ExternalID: "2", Name: "Quick", Phones: []string{"020 7946 0018"}})))
	limits := h.noWait()
	want := map[string]string{"slow": "timeout", "dead": "error", "quick": "hit", "Contacts": "miss"}
	var a *optest.Answer
	rightly := func() bool {
		a = h.lookup("+442079460018", "&timeout_ms=100")
		status := map[string]string{}
		for i := range len(a.At("sources").([]any)) {
			status[a.Text(fmt.Sprintf("sources.%d.source", i))] = a.Text(fmt.Sprintf("sources.%d.status", i))
		}
		return fmt.Sprint(status) == fmt.Sprint(want)
	}
	waitFor(t, rightly) // the slow system hangs all the time without delaying lookups
	if a.Want(200).Text("name") != "Quick" || a.At("complete") != false || a.At("cached") != false {
		t.Errorf("got %s", a.Bytes)
	}
	if got := limits(); len(got) != 1 || got[0] != 100*time.Millisecond {
		t.Errorf("waited for systems for %v", got)
	}
	close(release)
	waitFor(t, func() bool { a = h.lookup("+442079460018", "&timeout_ms=100").Want(200); return a.At("cached") == true })
	if a.Text("name") != "Slow" || a.At("complete") != true || a.Text("alternatives.0.name") != "Quick" {
		t.Errorf("afterwards %s", a.Bytes)
	}
}

// waitFor repeats until the answer is right; a minute suffices on a busy machine.
func waitFor(t *testing.T, right func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !right(); {
		if time.Now().After(deadline) {
			t.Fatal("the answer was not right within a minute")
		}
	}
}

func TestLookup_ExactOwnContactSkipsSystems(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	var asked atomic.Int32
	h.connect(0, source("crm", 1, func(context.Context, contact.Query) ([]contact.Record, error) { asked.Add(1); return nil, nil }))
	h.do("POST", "/contacts", `{"first_name":"Ada","phones":[{"number":"+442079460018"}]}`).Want(201)
	if a := h.lookup("+442079460018").Want(200); asked.Load() != 0 || a.Text("sources.1.status") != "skipped" || a.At("complete") != true {
		t.Errorf("asked %d times: %s", asked.Load(), a.Bytes)
	}
	h.lookup("+442079460019").Want(404)
	h.lookup("1234").Want(404)
	if asked.Load() != 1 {
		t.Errorf("asked %d times, want once: short numbers are nobody's business", asked.Load())
	}
}

func TestLookup_ConcurrentLookupsShareOne(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	var asked atomic.Int32
	release := make(chan struct{})
	answer := hanging(release, contact.Record{ExternalID: "1", Name: "One", Phones: []string{"+442079460018"}})
	h.connect(900, source("crm", 1, func(ctx context.Context, q contact.Query) ([]contact.Record, error) {
		asked.Add(1)
		return answer(ctx, q)
	}))
	done := make(chan string, 20)
	for range cap(done) {
		go func() { done <- h.lookup("+442079460018", "&timeout_ms=2000").Text("name") }()
	}
	for asked.Load() == 0 {
		time.Sleep(time.Millisecond) //nolint:forbidigo // polls a condition that publishes no event
	}
	close(release)
	for range cap(done) {
		if name := <-done; name != "One" {
			t.Errorf("got %q", name)
		}
	}
	if asked.Load() > 2 {
		t.Errorf("asked %d times", asked.Load())
	}
}
