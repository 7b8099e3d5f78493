package trunk_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"soniq/internal/telephony/trunk"
)

// testClock returns a time that the test sets.
type testClock struct{ now time.Time }

func (c *testClock) Now() time.Time          { return c.now }
func (c *testClock) advance(d time.Duration) { c.now = c.now.Add(d) }
func newClock() *testClock                   { return &testClock{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }
func beginCalls(l *trunk.Limiter, n int, limit trunk.Limit) (ends []func(), last trunk.Reason) {
	for range n {
		end, r := l.Begin("org", limit)
		if r != trunk.Allowed {
			return ends, r
		}
		ends = append(ends, end)
	}
	return ends, trunk.Allowed
}

func TestLimiter_CallsPerSecond(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := trunk.NewLimiter(c.Now)
	limit := trunk.Limit{PerSecond: 5}
	if ends, r := beginCalls(l, 6, limit); len(ends) != 5 || r != trunk.CallsPerSecondExceeded {
		t.Errorf("at once: %d, %q", len(ends), r)
	}
	c.advance(400 * time.Millisecond)
	if ends, r := beginCalls(l, 6, limit); len(ends) != 2 || r != trunk.CallsPerSecondExceeded {
		t.Errorf("0.4 s later: %d, %q", len(ends), r)
	}
	c.advance(time.Hour)
	if ends, _ := beginCalls(l, 100, limit); len(ends) != 5 {
		t.Errorf("an hour later: %d; calls not made are not saved up", len(ends))
	}
	if _, r := l.Begin("other", limit); r != trunk.Allowed {
		t.Errorf("another organisation: %q", r)
	}
}

func TestLimiter_ConcurrentCalls(t *testing.T) {
	t.Parallel()
	l := trunk.NewLimiter(newClock().Now)
	limit := trunk.Limit{Concurrent: 3}
	ends, r := beginCalls(l, 4, limit)
	if len(ends) != 3 || r != trunk.ConcurrentCallsExceeded {
		t.Fatalf("%d, %q", len(ends), r)
	}
	ends[0]()
	ends[0]() // a second end of the same call has no effect
	if more, r := beginCalls(l, 2, limit); len(more) != 1 || r != trunk.ConcurrentCallsExceeded {
		t.Errorf("after one end: %d, %q", len(more), r)
	}
	if got := l.Running("org"); got != 3 {
		t.Errorf("running %d", got)
	}
}

func TestLimiter_DailyMinutesIncludeRunningCalls(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := trunk.NewLimiter(c.Now)
	limit := trunk.Limit{MinutesPerDay: 10}
	ends, _ := beginCalls(l, 2, limit)
	c.advance(4 * time.Minute)
	ends[0]()
	if _, r := beginCalls(l, 1, limit); r != trunk.Allowed {
		t.Errorf("after 8 of 10 minutes: %q", r)
	}
	c.advance(time.Minute) // 4 + 5 + 1
	if _, r := beginCalls(l, 1, limit); r != trunk.DailyMinutesExceeded {
		t.Errorf("after 10 minutes: %q", r)
	}
	c.advance(12 * time.Hour)
	ends[1]()
	l = trunk.NewLimiter(c.Now)
	l.AddUsed("org", limit, 10*time.Minute)
	if _, r := beginCalls(l, 1, limit); r != trunk.DailyMinutesExceeded {
		t.Errorf("used up before a restart: %q", r)
	}
	c.advance(24 * time.Hour)
	if _, r := beginCalls(l, 1, limit); r != trunk.Allowed {
		t.Errorf("the next day: %q", r)
	}
}

func TestLimiter_EmergencyCallUnlimited(t *testing.T) {
	t.Parallel()
	l := trunk.NewLimiter(newClock().Now)
	limit := trunk.Limit{PerSecond: 1, Concurrent: 2}
	end := l.BeginUnlimited("org", trunk.Limit{})
	if _, r := beginCalls(l, 1, limit); r != trunk.Allowed {
		t.Errorf("a call after it: %q", r)
	}
	l.BeginUnlimited("org", trunk.Limit{})
	if got := l.Running("org"); got != 3 {
		t.Errorf("running %d", got)
	}
	end()
	if got := l.Running("org"); got != 2 {
		t.Errorf("running %d after its end", got)
	}
}

func TestLimiter_Concurrency(t *testing.T) {
	t.Parallel()
	l := trunk.NewLimiter(time.Now)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				end, r := l.Begin("org", trunk.Limit{Concurrent: 4})
				if n := l.Running("org"); n > 4 {
					t.Errorf("%d in progress", n)
				}
				if r == trunk.Allowed {
					end()
				}
			}
		})
	}
	all.Wait()
	if got := l.Running("org"); got != 0 {
		t.Errorf("%d left", got)
	}
}

func TestLimiter_SweepsIdleCounters(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := trunk.NewLimiter(c.Now)
	for i := range 20_000 {
		end, r := l.Begin(fmt.Sprint("org>", i), trunk.Limit{PerSecond: 1})
		if r != trunk.Allowed {
			t.Fatal(r)
		}
		end()
		c.advance(time.Millisecond)
	}
	if n := l.KeyCount(); n > 8192 {
		t.Errorf("%d destinations are kept", n)
	}
}
