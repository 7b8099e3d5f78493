package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"soniq/db"
	"soniq/db/dbtest"
	"soniq/memory"
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
	s := room(t, d, nil)
	began := time.Now()
	fill(t, s, d, n)
	t.Logf("learnt %d passages in %.0f s", n, time.Since(began).Seconds())

	began = time.Now()
	if err := s.Warm(context.Background()); err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("index read in %.1f s, heap %d MB", time.Since(began).Seconds(), m.HeapAlloc>>20)

	_, queries := evaluation(t)
	var all, callers []time.Duration
	for range 4 {
		for _, q := range queries {
			began := time.Now()
			search(t, s, "org_a", memory.Query{Text: q.Query})
			all = append(all, time.Since(began))
			began = time.Now()
			if _, err := s.Caller(context.Background(), "org_a", phoneOf(rand.IntN(n/20+1)), 10); err != nil {
				t.Fatal(err)
			}
			callers = append(callers, time.Since(began))
		}
	}
	report(t, "search", all)
	report(t, "caller", callers)
}

func report(t *testing.T, name string, took []time.Duration) {
	slices.Sort(took)
	t.Logf("%s: p50 %v, p95 %v, p99 %v, max %v (%d)", name, took[len(took)/2], took[len(took)*95/100], took[len(took)*99/100],
		took[len(took)-1], len(took))
}

func phoneOf(i int) string { return fmt.Sprintf("+1415%07d", i) }

// fill learns n passages made of turns of the evaluation set in random order, one passage per call, each number
// having 20.
func fill(t *testing.T, s *memory.Service, d *db.DB, n int) {
	docs, _ := evaluation(t)
	r := rand.New(rand.NewPCG(2, 2))
	for done := 0; done < n; done += 500 {
		err := d.Tx(context.Background(), func(tx db.Querier) error {
			for i := range 500 {
				if err := s.Learn(context.Background(), tx, "org_a", lessonOf(t, s, docs, r, done+i, n)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func lessonOf(t *testing.T, s *memory.Service, docs []document, r *rand.Rand, i, n int) memory.Lesson {
	c := memory.Call{ID: fmt.Sprintf("call_%d", i), Phone: phoneOf(i / 20), Direction: "inbound", Status: "completed",
		At: time.Now().Add(-time.Duration(n-i) * memory.Window / time.Duration(n+n/10))}
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
	l, err := s.Prepare(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
