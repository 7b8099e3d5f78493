package clock

import (
	"testing"
	"time"
)

func TestTicker_TicksTogether(t *testing.T) {
	short, long := NewTicker(20*time.Millisecond), NewTicker(100*time.Millisecond)
	defer short.Stop()
	defer long.Stop()
	for range 3 {
		at := <-long.C
		if late := at.Sub(started) % (100 * time.Millisecond); late > 50*time.Millisecond {
			t.Errorf("a tick came %v after a multiple of its interval", late)
		}
		<-short.C
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
