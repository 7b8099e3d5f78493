package pendingrelease

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPendingReleases_ConfirmedOrTimedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g Users
		if g.Has("ada") {
			t.Fatal("nobody had a call")
		}
		first, second := make(chan struct{}), make(chan struct{})
		g.AddEnded("ada", first)
		g.AddEnded("ada", second)
		if !g.Has("ada") || g.Has("bob") {
			t.Fatal("ada has two calls to confirm, bob none")
		}
		close(first)
		if !g.Has("ada") {
			t.Error("one of two is not confirmed")
		}
		close(second)
		if g.Has("ada") || len(g.by) != 0 {
			t.Errorf("both are confirmed: %v", g.by)
		}
		soon := g.AddPlanned("dee")
		time.Sleep(2 * maxReleaseWait)
		if !g.Has("dee") {
			t.Error("dee is about to be rung, and may be at any moment")
		}
		soon()
		if soon(); g.Has("dee") {
			t.Error("dee is not going to be rung any more")
		}
		rung := make(chan struct{})
		g.AddRinging("cyd", rung)
		time.Sleep(2 * maxReleaseWait)
		if !g.Has("cyd") {
			t.Error("cyd's telephone rings still")
		}
		g.AddEnded("cyd", rung)
		time.Sleep(maxReleaseWait)
		if g.Has("cyd") {
			t.Error("cyd's call is over, and its telephone says nothing")
		}
		g.AddEnded("bob", make(chan struct{}))
		time.Sleep(maxReleaseWait - time.Millisecond)
		if !g.Has("bob") {
			t.Error("bob's telephone is waited for")
		}
		time.Sleep(time.Millisecond)
		if g.Has("bob") {
			t.Error("bob's telephone says nothing, and is waited for no longer")
		}
	})
}

// A user with many calls is not looked through for each of them, and those that are over are not kept.
func TestPendingReleases_PrunesEnded(t *testing.T) {
	t.Parallel()
	var g Users
	lasting := make(chan struct{})
	g.AddRinging("ada", lasting)
	for range 1000 {
		gone := make(chan struct{})
		g.AddRinging("ada", gone)
		g.AddEnded("ada", gone)
		close(gone)
	}
	if n := len(g.by["ada"].until); n > 3*minKeptReleases {
		t.Errorf("%d calls are kept, of which one is not over", n)
	}
	if !g.Has("ada") || g.by["ada"].kept != 1 {
		t.Errorf("%d calls are not over, want one", g.by["ada"].kept)
	}
}
