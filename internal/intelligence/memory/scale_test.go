package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// TestMeasureSearch measures search and caller memory over many passages. It is run by hand:
// SONIQ_EVAL_PASSAGES=1000000 go test -run MeasureSearch -v -timeout 1h ./memory
func TestMeasureSearch(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SONIQ_EVAL_PASSAGES"))
	if n == 0 {
		t.Skip("set SONIQ_EVAL_PASSAGES to run")
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) { measure(t, d, n) })
}

func measure(t *testing.T, d *db.DB, n int) {
	s := newService(t, d, nil)
	began := time.Now()
	lessons := fill(t, s, d, n)
	t.Logf("learnt %d passages in %.0f s", n, time.Since(began).Seconds())

	began = time.Now()
	if err := s.WarmIndexes(context.Background()); err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("index read in %.1f s, heap %d MB", time.Since(began).Seconds(), m.HeapAlloc>>20)
	_, queries := evaluation(t)
	kept := 0.0
	for _, q := range queries {
		share, err := s.Recall(context.Background(), "org_a", q.Query)
		if err != nil {
			t.Fatal(err)
		}
		kept += share / float64(len(queries))
	}
	t.Logf("of the hundred nearest by all estimates %.1f %% are found", 100*kept)
	l := nlp.NewWordEmbedding()
	// caches no vectors: everything that is ranked is read from the database
	lean := memory.New(memory.Config{DB: d, Lexicon: l, Embedder: l, Budget: 1})
	if _, err := lean.Search(context.Background(), "org_a", memory.Query{Text: "invoice"}); err != nil {
		t.Fatal(err)
	}
	measureQueries(t, lean, n, queries[:30], "that keeps nothing, alone")
	lean.DropIndex("org_a")
	measureQueries(t, s, n, queries, "alone")
	var misspelt []query
	for _, c := range misheard {
		misspelt = append(misspelt, query{Query: "the call with " + c[0] + " about the invoice"})
	}
	measureQueries(t, s, n, misspelt, "for misspelt names, alone")

	learnt, stop := make(chan int), make(chan struct{})
	go func() { learnt <- insertCalls(t, s, d, lessons, n, stop) }()
	began = time.Now()
	measureQueries(t, s, n, queries, "beside inserts")
	close(stop)
	took := time.Since(began).Seconds()
	t.Logf("meanwhile %.0f calls a second were learnt", float64(<-learnt)/took)
}

// measureQueries runs searches and caller lookups, one after the other.
func measureQueries(t *testing.T, s *memory.Service, n int, queries []query, how string) {
	var all, callers []time.Duration
	for range 4 {
		for _, q := range queries {
			began := time.Now()
			search(t, s, "org_a", memory.Query{Text: q.Query})
			all = append(all, time.Since(began))
			began = time.Now()
			if _, err := s.Caller(context.Background(), "org_a", phoneOf(rand.IntN(min(n, distinct)/20)), 10); err != nil {
				t.Fatal(err)
			}
			callers = append(callers, time.Since(began))
		}
	}
	report(t, "search "+how, all)
	report(t, "caller "+how, callers)
}

// insertCalls stores a call every ten milliseconds until it is stopped.
func insertCalls(t *testing.T, s *memory.Service, d *db.DB, lessons []memory.PreparedCall, n int, stop chan struct{}) (learnt int) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return learnt
		case <-tick.C:
		}
		err := d.Tx(context.Background(), func(tx db.Querier) error {
			return s.IndexCall(context.Background(), tx, "org_a", lessons[learnt%len(lessons)].WithCall(callNumber(n+learnt, n)))
		})
		if err != nil {
			t.Error(err)
			return learnt
		}
		learnt++
	}
}

func report(t *testing.T, name string, took []time.Duration) {
	slices.Sort(took)
	t.Logf("%s: p50 %v, p95 %v, p99 %v, max %v (%d; load %s)", name, took[len(took)/2], took[len(took)*95/100], took[len(took)*99/100],
		took[len(took)-1], len(took), loadAverage())
}

// loadAverage returns the load average of the last minute.
func loadAverage() string {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

func phoneOf(i int) string { return fmt.Sprintf("+1415%07d", i) }

// distinct is the number of passages that are stored one by one; the rest are copies for other calls of other
// numbers.
const distinct = 100_000

// fill stores n passages, one per call and 20 per number. They are 5,000 different ones, made of turns of the
// evaluation set in random order.
func fill(t *testing.T, s *memory.Service, d *db.DB, n int) []memory.PreparedCall {
	docs, _ := evaluation(t)
	r := rand.New(rand.NewPCG(2, 2))
	lessons := make([]memory.PreparedCall, 5000)
	for i := range lessons {
		l, err := s.Prepare(context.Background(), callLike(docs, r))
		if err != nil {
			t.Fatal(err)
		}
		lessons[i] = l
	}
	for done := 0; done < min(n, distinct); done += 500 {
		err := d.Tx(context.Background(), func(tx db.Querier) error {
			for i := done; i < done+500; i++ {
				if err := s.IndexCall(context.Background(), tx, "org_a", lessons[i%len(lessons)].WithCall(callNumber(i, n))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for copies := 1; copies*distinct < n; copies++ {
		copyAll(t, d, copies)
	}
	return lessons
}

// copyAll copies the passages that were stored one by one.
func copyAll(t *testing.T, d *db.DB, number int) {
	const calls = `INSERT INTO memory_calls (org_id, call_id, phone, at, direction, status, talk_seconds, tags, summary, outcome, topics,
		action_items)
		SELECT org_id, call_id || $1, phone || $1, at, direction, status, talk_seconds, tags, summary, outcome, topics, action_items
		FROM memory_calls WHERE org_id = 'org_a' AND call_id NOT LIKE '%x%'`
	const items = `INSERT INTO memory_items (org_id, key, id, call_id, kind, start_ms, end_ms, text)
		SELECT org_id, key + $2, id || $1, call_id || $1, kind, start_ms, end_ms, text FROM memory_items WHERE org_id = 'org_a' AND call_id
		NOT LIKE '%x%'`
	const vectors = `INSERT INTO memory_vectors (org_id, key, phone, at, kind, direction, model, vector, terms)
		SELECT org_id, key + $2, phone || $1, at, kind, direction, model, vector, terms FROM memory_vectors WHERE org_id = 'org_a'
		AND phone NOT LIKE '%x%'`
	suffix := fmt.Sprintf("x%d", number)
	apart := int64(number) << 45 // hours
	err := d.Tx(context.Background(), func(tx db.Querier) error {
		if _, err := tx.Exec(context.Background(), calls, suffix); err != nil {
			return err
		}
		if _, err := tx.Exec(context.Background(), items, suffix, -apart); err != nil {
			return err
		}
		_, err := tx.Exec(context.Background(), vectors, suffix, -apart)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// callNumber returns the i-th of n calls over six months.
func callNumber(i, n int) memory.Call {
	return memory.Call{ID: fmt.Sprintf("call_%d", i), Phone: phoneOf(i / 20), Direction: "inbound", Status: "completed",
		At: time.Now().Add(-time.Duration(n-min(i, n)) * memory.Window / time.Duration(n+n/10))}
}

func callLike(docs []document, r *rand.Rand) memory.Call {
	var c memory.Call
	main := docs[r.IntN(len(docs))]
	for _, turn := range main.Turns {
		if r.IntN(3) > 0 {
			c.Turns = append(c.Turns, memory.Turn{Speaker: "Caller", Text: turn.Text})
		}
	}
	for range 4 {
		other := docs[r.IntN(len(docs))]
		c.Turns = append(c.Turns, memory.Turn{Speaker: "Agent", Text: other.Turns[r.IntN(len(other.Turns))].Text})
	}
	return c
}
