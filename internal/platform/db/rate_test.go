package db

import (
	"testing"
	"time"
)

func TestRate_Decays(t *testing.T) {
	t.Parallel()
	var r rate
	at := time.Unix(1000, 0)
	for i := range 40 {
		if got := r.add(at); got != i+1 {
			t.Fatalf("%d after %d", got, i+1)
		}
	}
	if got := r.add(at.Add(150 * time.Millisecond)); got != 40 {
		t.Errorf("a moment later: %d, want the 40 of the tenth before", got)
	}
	if got := r.add(at.Add(350 * time.Millisecond)); got != 1 {
		t.Errorf("long after: %d, want 1", got)
	}
}
