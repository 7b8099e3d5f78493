package clock

import (
	"testing"
	"time"
)

// hands are the two clocks of a machine, set by a test.
type hands struct {
	wall    time.Time
	elapsed time.Duration
}

func (h *hands) read() (time.Time, time.Duration) { return h.wall, h.elapsed }

func (h *hands) pass(d time.Duration) { h.wall, h.elapsed = h.wall.Add(d), h.elapsed+d }

// https://github.com/Tr3kkR/Yuzu/issues/2348
func TestTrust_JumpBeforeStart(t *testing.T) {
	last := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for ahead, want := range map[time.Duration]bool{-1000 * time.Hour: true, 0: true, 23 * time.Hour: true, 25 * time.Hour: false,
		10000 * time.Hour: false} {
		h := &hands{wall: last.Add(ahead)}
		if _, doubt := NewTrust(last, h.read).Check(); (doubt == nil) != want {
			t.Errorf("%s ahead: %+v", ahead, doubt)
		}
	}
	h := &hands{wall: last}
	if _, doubt := NewTrust(time.Time{}, h.read).Check(); doubt != nil {
		t.Errorf("first start: %+v", doubt)
	}
}

func TestTrust_JumpWhileRunning(t *testing.T) {
	h := &hands{wall: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	trust := NewTrust(time.Time{}, h.read)
	check := func(what string, want bool) {
		t.Helper()
		if _, doubt := trust.Check(); (doubt == nil) != want {
			t.Errorf("%s: %+v", what, doubt)
		}
	}
	h.pass(1000 * time.Hour)
	check("a long time between two checks", true)
	h.wall = h.wall.AddDate(0, 0, 420)
	check("ahead by 420 days", false)
	h.pass(5 * time.Hour)
	check("five hours later", false)
	h.wall = h.wall.AddDate(0, 0, -420)
	check("set right", true)
	h.wall = h.wall.AddDate(0, 0, 420)
	check("ahead again", false)
	h.pass(5 * time.Hour)
	check("the hours before do not count", false)
	h.pass(time.Hour + time.Second)
	check("six hours later", true)
	h.wall = h.wall.AddDate(0, 0, 2)
	check("ahead by two days", false)
	if now := trust.Confirm(); !now.Equal(h.wall) {
		t.Errorf("confirmed %s", now)
	}
	check("confirmed", true)
}

// A clock that starts long ago and is set right later is trusted throughout.
func TestTrust_ClockWithoutBattery(t *testing.T) {
	last := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := &hands{wall: time.Unix(0, 0)}
	trust := NewTrust(last, h.read)
	for _, right := range []bool{false, true} {
		if right {
			h.wall = last.Add(time.Hour)
		}
		if _, doubt := trust.Check(); doubt != nil {
			t.Errorf("set right %v: %+v", right, doubt)
		}
		if got := trust.Last(); got.Before(last) {
			t.Errorf("set right %v: the last trusted time is %s", right, got)
		}
	}
}

// A clock that was trusted wrongly and set back is the expected one after six hours.
func TestTrust_SetBackForGood(t *testing.T) {
	h := &hands{wall: time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)}
	trust := NewTrust(time.Time{}, h.read)
	h.wall = h.wall.AddDate(-1, 0, 0)
	for _, wait := range []time.Duration{0, 7 * time.Hour} {
		h.pass(wait)
		if _, doubt := trust.Check(); doubt != nil {
			t.Errorf("set back: %+v", doubt)
		}
	}
	if got := trust.Last(); !got.Equal(h.wall) {
		t.Errorf("the last trusted time is %s", got)
	}
	h.wall = h.wall.AddDate(1, 0, 0)
	if _, doubt := trust.Check(); doubt == nil {
		t.Error("a jump ahead after that is trusted")
	}
}
