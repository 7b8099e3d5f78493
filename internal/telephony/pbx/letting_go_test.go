package pbx

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestATelephoneIsLetGoWhenItHasConfirmedOrSaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g lettingGo
		if g.is("ada") {
			t.Fatal("nobody had a call")
		}
		first, second := make(chan struct{}), make(chan struct{})
		g.ends("ada", first)
		g.ends("ada", second)
		if !g.is("ada") || g.is("bob") {
			t.Fatal("ada has two calls to confirm, bob none")
		}
		close(first)
		if !g.is("ada") {
			t.Error("one of two is not confirmed")
		}
		close(second)
		if g.is("ada") || len(g.by) != 0 {
			t.Errorf("both are confirmed: %v", g.by)
		}
		soon := g.about("dee")
		time.Sleep(2 * longestParting)
		if !g.is("dee") {
			t.Error("dee is about to be rung, and may be at any moment")
		}
		soon()
		if soon(); g.is("dee") {
			t.Error("dee is not going to be rung any more")
		}
		rung := make(chan struct{})
		g.rings("cyd", rung)
		time.Sleep(2 * longestParting)
		if !g.is("cyd") {
			t.Error("cyd's telephone rings still")
		}
		g.ends("cyd", rung)
		time.Sleep(longestParting)
		if g.is("cyd") {
			t.Error("cyd's call is over, and its telephone says nothing")
		}
		g.ends("bob", make(chan struct{}))
		time.Sleep(longestParting - time.Millisecond)
		if !g.is("bob") {
			t.Error("bob's telephone is waited for")
		}
		time.Sleep(time.Millisecond)
		if g.is("bob") {
			t.Error("bob's telephone says nothing, and is waited for no longer")
		}
	})
}

// A user with many calls is not looked through for each of them, and those that are over are not kept.
func TestPartingsThatAreOverAreNotKept(t *testing.T) {
	t.Parallel()
	var g lettingGo
	lasting := make(chan struct{})
	g.rings("ada", lasting)
	for range 1000 {
		gone := make(chan struct{})
		g.rings("ada", gone)
		g.ends("ada", gone)
		close(gone)
	}
	if n := len(g.by["ada"].until); n > 3*fewPartings {
		t.Errorf("%d calls are kept, of which one is not over", n)
	}
	if !g.is("ada") || g.by["ada"].kept != 1 {
		t.Errorf("%d calls are not over, want one", g.by["ada"].kept)
	}
}
