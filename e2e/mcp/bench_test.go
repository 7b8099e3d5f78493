package mcp_test

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// TestMeasure_ToolCalls measures tool calls in every revision, with several at once. It runs with SONIQ_BENCH only.
func TestMeasure_ToolCalls(t *testing.T) {
	if os.Getenv("SONIQ_BENCH") == "" {
		t.Skip("measured with SONIQ_BENCH=1")
	}
	s := rig.Start(t, rig.Options{Flags: []string{"--rate-reads", "0", "--rate-burst", "0"}})
	org := s.Org("live")
	sessionless := func() error { once(t, org, "get_live_calls", `{}`); return nil }
	ways := map[string]func() error{"2026-07-28": sessionless}
	for era := range eras {
		a := connect(t, org, era, nil)
		ways[era+" client"] = func() error { _, err := a.call("get_live_calls", nil); return err }
	}
	ways["REST GET /calls/live"] = func() error { org.Do("GET", "/calls/live", nil); return nil }
	for name, call := range ways {
		measure(t, name, call)
	}
}

// measure calls for some seconds, eight at once.
func measure(t *testing.T, name string, call func() error) {
	t.Helper()
	const workers, span = 8, 4 * time.Second
	var failed atomic.Int64
	took := make([][]time.Duration, workers)
	var all sync.WaitGroup
	end := time.Now().Add(span)
	for w := range workers {
		all.Go(func() {
			for time.Now().Before(end) {
				start := time.Now()
				if call() != nil {
					failed.Add(1)
				}
				took[w] = append(took[w], time.Since(start))
			}
		})
	}
	all.Wait()
	each := slices.Concat(took...)
	slices.Sort(each)
	t.Logf("%-28s %6.0f calls/s, p50 %s, p99 %s, failed %d", name, float64(len(each))/span.Seconds(),
		each[len(each)/2].Round(10*time.Microsecond), each[len(each)*99/100].Round(10*time.Microsecond), failed.Load())
}
