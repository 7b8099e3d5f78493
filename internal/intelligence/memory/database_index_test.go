package memory_test

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// pglite starts a PostgreSQL with pgvector in WebAssembly and opens it. It runs one transaction at a time, and does
// not support prepared statements of several connections.
func pglite(t *testing.T) *db.DB {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	folder, err := filepath.Abs("../../../e2e/node")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules/@electric-sql/pglite")); err != nil {
		t.Fatalf("%v: scripts/setup test", err)
	}
	c := exec.Command("node", "node_modules/@electric-sql/pglite-socket/dist/scripts/server.cjs", "-p", fmt.Sprint(port), "-m", "40", "-e", "@electric-sql/pglite-pgvector:vector")
	c.Dir = folder
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	ready := make(chan bool, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "listening on") {
				ready <- true
			}
		}
		close(ready)
	}()
	if ok := <-ready; !ok {
		t.Fatal("PGlite ended before it was ready")
	}
	d, err := db.Open(context.Background(), fmt.Sprintf("postgres://postgres:postgres@127.0.0.1:%d/postgres?sslmode=disable&default_query_exec_mode=exec", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	return d
}

// compareResults compares the first ten results of all queries. It returns the share of common results, and the share of queries with the
// same first result. A first result whose score differs by less than a hundredth counts as the same.
func compareResults(t *testing.T, a, b *memory.Service, queries []query, change func(*memory.Query)) (both, first float64) {
	t.Helper()
	got, all := 0, 0
	for _, q := range queries {
		in := memory.Query{Text: q.Query, Limit: 10}
		change(&in)
		x, y := search(t, a, "org_a", in).Results, search(t, b, "org_a", in).Results
		there := map[string]bool{}
		for _, r := range x {
			there[r.ID] = true
		}
		for _, r := range y {
			if there[r.ID] {
				got++
			}
		}
		all += max(len(x), len(y))
		if len(x) > 0 && len(y) > 0 && (x[0].ID == y[0].ID || math.Abs(x[0].Score-y[0].Score) < 0.01) {
			first += 1 / float64(len(queries))
		}
	}
	return float64(got) / float64(max(all, 1)), first
}

func TestDatabaseIndexes_SameResultsAsInMemory(t *testing.T) {
	t.Parallel()
	if os.Getenv("SONIQ_TEST_POSTGRES") != "" {
		t.Skip("it starts a PostgreSQL of its own: the unit tests on SQLite include it")
	}
	d := pglite(t)
	ctx := context.Background()
	docs, queries := evaluation(t)
	s := newService(t, d, nil)
	lexicon := nlp.NewWordEmbedding()
	inProcess := memory.New(memory.Config{DB: d, Lexicon: lexicon, Embedder: lexicon})
	fill(t, s, d, 1500)
	indexCall(t, s, d, "org_b", callOf(docs[0], "+14155550100", time.Now()))

	if on, err := s.EnableDatabaseIndexes(ctx, memory.IndexAuto); on || err != nil {
		t.Fatalf("without the extension: %v, %v", on, err)
	}
	if on, err := s.EnableDatabaseIndexes(ctx, memory.IndexDatabase); !on || err != nil {
		t.Fatalf("told to: %v, %v", on, err)
	}
	if on, err := s.EnableDatabaseIndexes(ctx, memory.IndexAuto); !on || err != nil {
		t.Fatalf("with the extension: %v, %v", on, err)
	}
	s.SetLargeFrom(1000)
	share := func(want bool) {
		t.Helper()
		if err := s.BuildLargeIndexes(ctx); err != nil {
			t.Fatal(err)
		}
		for org, want := range map[string]bool{"org_a": want, "org_b": false} {
			if got, err := s.UsesDatabaseIndex(ctx, org); got != want || err != nil {
				t.Fatalf("%s is searched in the database: %v, %v", org, got, err)
			}
		}
	}
	share(true)
	for name, change := range map[string]func(*memory.Query){
		"all":     func(*memory.Query) {},
		"meaning": func(q *memory.Query) { q.Mode = memory.Semantic },
		"words":   func(q *memory.Query) { q.Mode = memory.Keyword },
		"since":   func(q *memory.Query) { q.Since = time.Now().Add(-memory.Window / 3) },
		"nothing": func(q *memory.Query) { q.Direction = "outbound" },
	} {
		both, first := compareResults(t, s, inProcess, queries[:30], change)
		t.Logf("%s: %.3f of the first ten are the same, %.3f of the first", name, both, first)
		if name != "nothing" && (both < 0.95 || first < 0.8) {
			t.Errorf("%s: %.3f of the first ten are the same, %.3f of the first; want 0.95 and 0.8", name, both, first)
		}
	}

	first := func(org, text string, kinds ...string) (r memory.Result) {
		t.Helper()
		if all := search(t, s, org, memory.Query{Text: text, Kinds: kinds}).Results; len(all) > 0 {
			r = all[0]
		}
		return r
	}
	in := func(f func(tx db.Querier) error) {
		t.Helper()
		if err := d.Tx(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	yacht := memory.Call{ID: "call_yacht", Phone: "+14155559999", At: time.Now(), Turns: []memory.Turn{{Speaker: "Caller", Text: "My sailing boat was struck by lightning near the lighthouse"}}}
	indexCall(t, s, d, "org_a", yacht)
	if r := first("org_a", "thunderstorm hit the yacht"); r.CallID == nil || *r.CallID != "call_yacht" {
		t.Errorf("a call that was learnt just now is not found: %+v", r)
	}
	if r := first("org_a", "lihgthouse"); r.CallID == nil || *r.CallID != "call_yacht" {
		t.Errorf("a misspelt word does not find the call: %+v", r)
	}
	if r := first("org_b", "lightning lighthouse"); r.CallID != nil && *r.CallID == "call_yacht" {
		t.Error("another organisation finds it")
	}
	note := memory.TextEntry{Kind: memory.KindNote, Of: "note_01J00000000000000000000001", Text: "Is allergic to peanuts", At: time.Now()}
	in(func(tx db.Querier) error { return s.AddText(ctx, tx, "org_a", note) })
	if r := first("org_a", "food allergies", memory.KindNote); r.Kind != memory.KindNote {
		t.Errorf("a note that was written just now is not found: %+v", r)
	}
	in(func(tx db.Querier) error { return s.DeleteText(ctx, tx, "org_a", note.Of) })
	in(func(tx db.Querier) error { return s.DeleteCall(ctx, tx, "org_a", "call_yacht") })
	if r := first("org_a", "food allergies", memory.KindNote); r.ID != "" {
		t.Errorf("a note that is forgotten: %+v", r)
	}
	if r := first("org_a", "lightning lighthouse"); r.CallID != nil && *r.CallID == "call_yacht" {
		t.Error("a call that is forgotten is found")
	}

	wantQuickSpellings(t, s)
	wantShown(t, s, d)

	s.SetLargeFrom(10_000) // as if most passages had been deleted
	share(false)
	if both, _ := compareResults(t, s, inProcess, queries[:10], func(*memory.Query) {}); both != 1 {
		t.Errorf("in the process again %.3f are the same", both)
	}
}

// wantQuickSpellings compares a search with a word that no passage has with one of known words. It looks up thousands of
// spellings, in the index: a plan that reads all passages takes 200 times as long.
func wantQuickSpellings(t *testing.T, s *memory.Service) {
	t.Helper()
	took := func(text string) (least time.Duration) {
		least = time.Hour
		for range 3 {
			began := time.Now()
			search(t, s, "org_a", memory.Query{Text: text, Mode: memory.Keyword, Limit: 10})
			least = min(least, time.Since(began))
		}
		return least
	}
	if known, unknown := took("stop the membership"), took("stop the mislaidd"); unknown > 60*known {
		t.Errorf("a search with an unknown word takes %v, one with known words %v", unknown, known)
	}
}

func TestDatabaseIndexes_Unsupported(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newService(t, d, nil)
		for _, how := range []string{memory.IndexAuto, memory.IndexProcess} {
			if on, err := s.EnableDatabaseIndexes(context.Background(), how); on || err != nil {
				t.Errorf("%s: %v, %v", how, on, err)
			}
		}
		// Debian's PostgreSQL 15 has no pgvector
		if on, err := s.EnableDatabaseIndexes(context.Background(), memory.IndexDatabase); on || err == nil {
			t.Errorf("told to: %v, %v", on, err)
		}
	})
}

// TestMeasureSearchInPostgreSQL measures searches with the indexes in the database and with the in-memory index. It
// is run by hand: SONIQ_EVAL_PASSAGES=20000 go test -run MeasureSearchInPostgreSQL -v -timeout 1h ./memory
func TestMeasureSearchInPostgreSQL(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SONIQ_EVAL_PASSAGES"))
	if n == 0 {
		t.Skip("set SONIQ_EVAL_PASSAGES to run")
	}
	d := pglite(t)
	ctx := context.Background()
	_, queries := evaluation(t)
	s := newService(t, d, nil)
	lexicon := nlp.NewWordEmbedding()
	inProcess := memory.New(memory.Config{DB: d, Lexicon: lexicon, Embedder: lexicon})
	began := time.Now()
	fill(t, s, d, n)
	t.Logf("learnt %d passages in %.0f s", n, time.Since(began).Seconds())
	if on, err := s.EnableDatabaseIndexes(ctx, memory.IndexDatabase); !on || err != nil {
		t.Fatalf("%v, %v", on, err)
	}
	s.SetLargeFrom(n)
	began = time.Now()
	if err := s.BuildLargeIndexes(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("indexed in %.0f s", time.Since(began).Seconds())
	measureQueries(t, inProcess, n, queries[:30], "in the process")
	measureQueries(t, s, n, queries[:30], "in the database")
	both, first := compareResults(t, s, inProcess, queries, func(*memory.Query) {})
	t.Logf("%.3f of the first ten are the same, %.3f of the first", both, first)
}
