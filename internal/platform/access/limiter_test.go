package access_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/platform/access"
)

func TestLimiter_ExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	l := access.NewLimiter(time.Now)
	policy := access.Policy{Name: "reads", Quota: 600, Window: time.Hour}
	var fit atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 100 {
				if _, ok := l.Take("key_a", 1, policy); ok {
					fit.Add(1)
				}
			}
		})
	}
	all.Wait()
	if fit.Load() != 600 {
		t.Errorf("%d of 1600 requests were let through, want 600", fit.Load())
	}
	if _, ok := l.Take("key_b", 1, policy); !ok {
		t.Error("another credential pays for it")
	}
}

func TestLimiter_WindowReset(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	l := access.NewLimiter(func() time.Time { return now })
	minute, burst := access.Policy{Name: "writes", Quota: 3, Window: time.Minute}, access.Policy{Name: "burst", Quota: 2, Window: time.Second}
	for i, c := range []struct {
		after      time.Duration
		ok         bool
		left, soon int
	}{
		{0, true, 2, 1}, {0, true, 1, 0}, {0, false, 1, 0}, {time.Second, true, 0, 1}, {time.Second, false, 0, 2},
		{57 * time.Second, false, 0, 2}, {time.Second, true, 2, 1},
	} {
		now = now.Add(c.after)
		all, ok := l.Take("key", 1, minute, burst)
		if ok != c.ok || all[0].Left != c.left || all[1].Left != c.soon {
			t.Errorf("request %d: %v with %+v, want %+v", i, ok, all, c)
		}
	}
}

func TestLimiter_RefusedRequestNotCounted(t *testing.T) {
	t.Parallel()
	l := access.NewLimiter(time.Now)
	wide, narrow := access.Policy{Name: "wide", Quota: 10, Window: time.Hour}, access.Policy{Name: "narrow", Quota: 1, Window: time.Hour}
	l.Take("key", 1, wide, narrow)
	for range 20 {
		if _, ok := l.Take("key", 1, wide, narrow); ok {
			t.Fatal("the narrow policy lets more than one through")
		}
	}
	if all, ok := l.Take("key", 1, wide); !ok || all[0].Left != 8 {
		t.Errorf("after refusals %+v, want 8 left", all)
	}
	if all, ok := l.Take("key", 1, access.Policy{Name: "none"}); !ok || len(all) != 0 {
		t.Error("a quota of 0 is no limit")
	}
}

func TestLimiter_BoundedCounts(t *testing.T) {
	t.Parallel()
	l := access.NewLimiter(time.Now)
	policy := access.Policy{Name: "attempts", Quota: 1, Window: time.Hour}
	for i := range 400_000 {
		l.Take(strconv.Itoa(i), 1, policy)
	}
	if n := access.CountOf(l); n > 130_000 {
		t.Errorf("%d counts are kept", n)
	}
}

func BenchmarkTake(b *testing.B) {
	l := access.NewLimiter(time.Now)
	var n atomic.Int64
	policies := []access.Policy{{Name: "reads", Quota: 1 << 40, Window: time.Minute}, {Name: "burst", Quota: 1 << 40, Window: time.Second}}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		who := "key" + strconv.FormatInt(n.Add(1), 10)
		for p.Next() {
			l.Take(who, 1, policies...)
		}
	})
}
