package clock

import (
	"testing"
	"time"
)

// TestTicker_TicksTogether starts two tickers in the middle of an interval. They tick at multiples of their intervals. A
// busy machine is late for some ticks, so the least lateness counts.
func TestTicker_TicksTogether(t *testing.T) {
	<-time.After(Until(100*time.Millisecond) + 50*time.Millisecond)
	short, long := NewTicker(20*time.Millisecond), NewTicker(100*time.Millisecond)
	defer short.Stop()
	defer long.Stop()
	least := time.Hour
	for n := 0; n < 3 || n < 50 && least > 20*time.Millisecond; n++ {
		at := <-long.C
		least = min(least, at.Sub(started)%(100*time.Millisecond))
		<-short.C
	}
	if least > 20*time.Millisecond {
		t.Errorf("the ticks came %v and more after a multiple of their interval", least)
	}
}

func TestTicker_Stop(t *testing.T) {
	k := NewTicker(10 * time.Millisecond)
	<-k.C
	k.Stop()
	select {
	case <-k.C: // a tick from before Stop
	default:
	}
	select {
	case <-k.C:
		t.Error("a stopped ticker ticks")
	case <-time.After(50 * time.Millisecond):
	}
}

func TestUntil_NextMultiple(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, time.Second, time.Hour} {
		if u := Until(d); u <= 0 || u > d {
			t.Errorf("%v until the next multiple of %v", u, d)
		}
	}
}
