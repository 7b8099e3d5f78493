package transport

import (
	"testing"
	"time"
)

func TestArrivalWindow_BurstIsNotLowLoad(t *testing.T) {
	t.Parallel()
	var c arrivalWindow
	now := time.Minute
	for n := range 2 * len(c.arrivals) {
		now += time.Microsecond
		if got, want := c.noteArrival(now), n < len(c.arrivals); got != want {
			t.Errorf("message %d: calm %t", n, got)
		}
	}
	now += lowLoadWindow + 1
	for n := range len(c.arrivals) {
		if !c.noteArrival(now) {
			t.Errorf("message %d after a pause: not calm", n)
		}
	}
	if c.noteArrival(now) {
		t.Error("calm with one more")
	}
}
