package pbx

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPendingReleases_ConfirmedOrTimedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g pendingReleases
		if g.has("ada") {
			t.Fatal("nobody had a call")
		}
		first, second := make(chan struct{}), make(chan struct{})
		g.addEnded("ada", first)
		g.addEnded("ada", second)
		if !g.has("ada") || g.has("bob") {
			t.Fatal("ada has two calls to confirm, bob none")
		}
		close(first)
		if !g.has("ada") {
			t.Error("one of two is not confirmed")
		}
		close(second)
		if g.has("ada") || len(g.by) != 0 {
			t.Errorf("both are confirmed: %v", g.by)
		}
		soon := g.addPlanned("dee")
		time.Sleep(2 * maxReleaseWait)
		if !g.has("dee") {
			t.Error("dee is about to be rung, and may be at any moment")
		}
		soon()
		if soon(); g.has("dee") {
			t.Error("dee is not going to be rung any more")
		}
		rung := make(chan struct{})
		g.addRinging("cyd", rung)
		time.Sleep(2 * maxReleaseWait)
		if !g.has("cyd") {
			t.Error("cyd's telephone rings still")
		}
		g.addEnded("cyd", rung)
		time.Sleep(maxReleaseWait)
		if g.has("cyd") {
			t.Error("cyd's call is over, and its telephone says nothing")
		}
		g.addEnded("bob", make(chan struct{}))
		time.Sleep(maxReleaseWait - time.Millisecond)
		if !g.has("bob") {
			t.Error("bob's telephone is waited for")
		}
		time.Sleep(time.Millisecond)
		if g.has("bob") {
			t.Error("bob's telephone says nothing, and is waited for no longer")
		}
	})
}

// A user with many calls is not looked through for each of them, and those that are over are not kept.
func TestPendingReleases_PrunesEnded(t *testing.T) {
	t.Parallel()
	var g pendingReleases
	lasting := make(chan struct{})
	g.addRinging("ada", lasting)
	for range 1000 {
		gone := make(chan struct{})
		g.addRinging("ada", gone)
		g.addEnded("ada", gone)
		close(gone)
	}
	if n := len(g.by["ada"].until); n > 3*minKeptReleases {
		t.Errorf("%d calls are kept, of which one is not over", n)
	}
	if !g.has("ada") || g.by["ada"].kept != 1 {
		t.Errorf("%d calls are not over, want one", g.by["ada"].kept)
	}
}
