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
