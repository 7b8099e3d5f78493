package agent

import (
	"testing"
	"time"
)

func TestLongLooksAreRarer(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0:                     0,
		time.Millisecond:      20 * time.Millisecond,
		2 * time.Millisecond:  40 * time.Millisecond,
		6 * time.Millisecond:  360 * time.Millisecond,
		10 * time.Millisecond: DueEvery,
		time.Minute:           DueEvery,
	} {
		if got := pause(took); got != want {
			t.Errorf("after a look of %v a rest of %v, want %v", took, got, want)
		}
	}
}
