package pbx

import "testing"

func TestAdmission_FreesPlaceAfterSetup(t *testing.T) {
	t.Parallel()
	var d admission
	d.open.Store(true)
	for i := range maxSetups {
		if !d.admit() {
			t.Fatalf("call %d was turned away, %d may come in", i+1, maxSetups)
		}
	}
	if d.admit() {
		t.Error("one more than may come in was let in")
	}
	d.done()
	if !d.admit() {
		t.Error("nobody was let in after somebody was through")
	}
	if got := d.refused.Load(); got != 1 {
		t.Errorf("%d calls counted as turned away, want 1", got)
	}
}
