package rate

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestTake_AllOrNone(t *testing.T) {
	t.Parallel()
	var l Limiter
	now := time.Unix(1_800_000_000, 0)
	org, one := Claim{Key: "org", PerSecond: 5, Burst: 5}, Claim{Key: "org +1", PerSecond: 1, Burst: 1}
	for i, c := range []struct {
		after   time.Duration
		claims  []Claim
		refused int
		ok      bool
	}{
		// a refused event costs the organisation nothing
		{0, []Claim{org, one}, 0, true}, {0, []Claim{org, one}, 1, false}, {0, []Claim{org, one}, 1, false},
		{0, []Claim{org}, 0, true}, {0, []Claim{org}, 0, true}, {0, []Claim{org}, 0, true}, {0, []Claim{org}, 0, true},
		{0, []Claim{org}, 0, false},
		{200 * time.Millisecond, []Claim{org, one}, 1, false}, {0, []Claim{org}, 0, true}, {0, []Claim{org}, 0, false},
		{800 * time.Millisecond, []Claim{org, one}, 0, true},
	} {
		now = now.Add(c.after)
		if refused, ok := l.Take(now, c.claims...); ok != c.ok || refused != c.refused {
			t.Errorf("event %d: claim %d, %v", i, refused, ok)
		}
	}
}

func TestTake_ExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	var l Limiter
	var all sync.WaitGroup
	var fit atomic.Int32
	now := time.Now()
	for range 16 {
		all.Go(func() {
			for range 100 {
				if _, ok := l.Take(now, Claim{Key: "k", PerSecond: 1, Burst: 600}); ok {
					fit.Add(1)
				}
			}
		})
	}
	if all.Wait(); fit.Load() != 600 {
		t.Errorf("%d of 1600 events were let through, want 600", fit.Load())
	}
}

func TestTake_FullBucketsRemoved(t *testing.T) {
	t.Parallel()
	var l Limiter
	now := time.Now()
	for i := range 200_000 {
		now = now.Add(time.Millisecond)
		l.Take(now, Claim{Key: strconv.Itoa(i), PerSecond: 1, Burst: 1})
	}
	if n := l.KeyCount(); n > minSweepSize {
		t.Errorf("%d keys are kept", n)
	}
	if _, ok := l.Take(now, Claim{Key: "199999", PerSecond: 1, Burst: 1}); ok {
		t.Error("a bucket in use was removed")
	}
}
