package pbx

import "testing"

func TestTheDoorIsOpenAgainWhenCallsAreSetUp(t *testing.T) {
	t.Parallel()
	var d door
	d.open.Store(true)
	for i := range maxSetUps {
		if !d.enter() {
			t.Fatalf("call %d was turned away, %d may come in", i+1, maxSetUps)
		}
	}
	if d.enter() {
		t.Error("one more than may come in was let in")
	}
	d.leave()
	if !d.enter() {
		t.Error("nobody was let in after somebody was through")
	}
	if got := d.turned.Load(); got != 1 {
		t.Errorf("%d calls counted as turned away, want 1", got)
	}
}
