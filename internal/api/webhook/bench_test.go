package webhook

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

// eachB is dbtest.Each for benchmarks.
func eachB(b *testing.B, run func(b *testing.B, d *db.DB)) {
	addresses := map[string]string{"sqlite": filepath.Join(b.TempDir(), "soniq.db")}
	if p := os.Getenv("SONIQ_TEST_POSTGRES"); p != "" {
		addresses["postgres"] = dbtest.Postgres(b, p)
	}
	for _, name := range []string{"sqlite", "postgres"} {
		if addresses[name] == "" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			d, err := db.Open(context.Background(), addresses[name])
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			if _, err := d.Migrate(context.Background()); err != nil {
				b.Fatal(err)
			}
			run(b, d)
		})
	}
}

// BenchmarkDelivery publishes as fast as it can, each event in its own transaction, and ends when every delivery is
// stored. It measures durable deliveries per second on one machine, including publishing and receiving.
func BenchmarkDelivery(b *testing.B) {
	for _, endpoints := range []int{1, 10} {
		b.Run(fmt.Sprintf("endpoints=%d", endpoints), func(b *testing.B) {
			eachB(b, func(b *testing.B, d *db.DB) { benchmarkDelivery(b, d, endpoints) })
		})
	}
}

func benchmarkDelivery(b *testing.B, d *db.DB, endpoints int) {
	h := newFixture(b, d, nil)
	h.run()
	var received atomic.Int64
	r := newReceiver(b, nil)
	r.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received.Add(1) })
	for range endpoints {
		h.create(r.URL, nil)
	}
	events := max(1, b.N/endpoints)
	h.warmUp()
	received.Store(0)
	b.ResetTimer()
	start, spent := time.Now(), cpuTime()
	work := make(chan int)
	var publishers sync.WaitGroup
	for range 64 {
		publishers.Go(func() {
			for i := range work {
				h.publish(event.CallMissed{CallID: fmt.Sprintf("call_%d", i/5)})
			}
		})
	}
	for i := range events {
		work <- i
	}
	close(work)
	publishers.Wait()
	published := time.Since(start)
	want := events * endpoints
	eventually(b, "all deliveries are written down", func() bool { return received.Load() >= int64(want) && h.open() == 0 })
	took := time.Since(start)
	b.ReportMetric(float64(want)/took.Seconds(), "deliveries/s")
	b.ReportMetric(float64((cpuTime()-spent).Microseconds())/float64(want), "cpu-µs/delivery")
	b.ReportMetric(float64(events)/published.Seconds(), "published/s")
	stats := d.Stats()
	b.ReportMetric(float64(stats.Transactions)/float64(stats.Commits), "functions/commit")
	b.ReportMetric(100*stats.CommitTime.Seconds()/took.Seconds(), "%committing")
	if got := received.Load(); got != int64(want) {
		b.Errorf("%d requests for %d deliveries", got, want)
	}
}

// warmUp delivers a few events and runs ANALYZE. PostgreSQL would run it automatically only within a minute.
func (h *fixture) warmUp() {
	h.t.Helper()
	for i := range 300 {
		h.publish(event.CallMissed{CallID: fmt.Sprintf("warm_%d", i)})
	}
	eventually(h.t, "the first events are delivered", func() bool { return h.unnumbered() == 0 && h.open() == 0 })
	if h.cfg.DB.Name() != "postgres" {
		return
	}
	if err := h.cfg.DB.Tx(context.Background(), func(tx db.Querier) error {
		_, err := tx.Exec(context.Background(), "ANALYZE")
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
}

// open returns the number of unfinished deliveries.
func (h *fixture) open() (n int) {
	const q = `SELECT count(*) FROM webhook_deliveries WHERE org_id = $1 AND finished_at IS NULL`
	if err := h.cfg.DB.Read(context.Background()).QueryRow(context.Background(), q, h.org).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// BenchmarkFirstAttempt measures the time from commit to the arrival of the first attempt, at a steady rate.
func BenchmarkFirstAttempt(b *testing.B) {
	eachB(b, func(b *testing.B, d *db.DB) {
		h := newFixture(b, d, nil)
		h.run()
		var arrived sync.Map
		r := newReceiver(b, nil)
		r.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
			arrived.Store(q.Header.Get("X-Service-Sequence"), time.Now())
		})
		h.create(r.URL, nil)
		h.warmUp()
		const pause = 2 * time.Millisecond
		committed := make([]time.Time, b.N)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		b.ResetTimer()
		for i := range b.N {
			<-tick.C
			h.publish(event.CallMissed{CallID: fmt.Sprintf("call_%d", i)})
			committed[i] = time.Now()
		}
		eventually(b, "all is delivered", func() bool {
			_, last := arrived.Load(fmt.Sprint(300 + b.N))
			return last && h.open() == 0
		})
		took := make([]time.Duration, 0, b.N)
		for i, at := range committed {
			if v, ok := arrived.Load(fmt.Sprint(300 + i + 1)); ok {
				took = append(took, v.(time.Time).Sub(at))
			}
		}
		slices.Sort(took)
		if len(took) == 0 {
			b.Fatal("nothing arrived")
		}
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[(len(took)*99-1)/100].Microseconds())/1000, "p99-ms")
		b.ReportMetric(0, "ns/op")
	})
}

// cpuTime returns the processor time of this process. Other load on the machine changes it only little.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
