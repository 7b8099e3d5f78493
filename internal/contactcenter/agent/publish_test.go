package agent

import (
	"testing"
	"time"
)

func TestPauseAfter_GrowsWithDuration(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0:                     0,
		time.Millisecond:      20 * time.Millisecond,
		2 * time.Millisecond:  40 * time.Millisecond,
		6 * time.Millisecond:  360 * time.Millisecond,
		10 * time.Millisecond: DueInterval,
		time.Minute:           DueInterval,
	} {
		if got := pauseAfter(took); got != want {
			t.Errorf("after a look of %v a rest of %v, want %v", took, got, want)
		}
	}
}
