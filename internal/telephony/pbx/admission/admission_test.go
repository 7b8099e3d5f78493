package admission

import (
	"testing"
)

func TestAdmission_FreesPlaceAfterSetup(t *testing.T) {
	t.Parallel()
	var d Gate
	d.open.Store(true)
	for i := range maxSetups {
		if !d.Admit() {
			t.Fatalf("call %d was turned away, %d may come in", i+1, maxSetups)
		}
	}
	if d.Admit() {
		t.Error("one more than may come in was let in")
	}
	d.Done()
	if !d.Admit() {
		t.Error("nobody was let in after somebody was through")
	}
	if got := d.refused.Load(); got != 1 {
		t.Errorf("%d calls counted as turned away, want 1", got)
	}
}

func TestAdmission_EmergencyHasHigherLimit(t *testing.T) {
	t.Parallel()
	var d Gate
	if d.AdmitUrgent() {
		t.Error("a call was let in before the door was open")
	}
	d.open.Store(true)
	for d.Admit() {
	}
	if !d.AdmitUrgent() {
		t.Error("what may be an emergency call was turned away")
	}
	for d.AdmitUrgent() {
		if d.inProgress.Load() > 2*maxSetups {
			t.Fatal("the door has no limit")
		}
	}
}
