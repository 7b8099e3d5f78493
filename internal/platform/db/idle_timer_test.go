package db

import (
	"runtime"
	"testing"
	"time"
)

func noWork() bool { return false }

// waitParked waits until the timer is parked.
func waitParked(s *idleTimer) {
	for s.until.Load() == awake {
		runtime.Gosched() // there is no notification
	}
}

func TestIdleTimer_WokenByEarlierDeadline(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		until, by time.Time
		ends      bool
	}{
		"at once, from a long sleep":    {now.Add(time.Hour), time.Time{}, true},
		"at once, from one without end": {time.Time{}, time.Time{}, true},
		"earlier":                       {now.Add(time.Hour), now.Add(time.Minute), true},
		"from one without end":          {time.Time{}, now.Add(time.Hour), true},
		"as early":                      {now.Add(time.Hour), now.Add(time.Hour), false},
		"later":                         {now.Add(time.Hour), now.Add(2 * time.Hour), false},
	} {
		s, stop, ended := newIdleTimer(), make(chan struct{}), make(chan bool)
		go func() { ended <- s.begin(c.until, noWork, stop) }()
		waitParked(s)
		s.end(c.by)
		if rung := len(s.bell) > 0 || s.until.Load() == awake; c.ends {
			if !<-ended {
				t.Errorf("%s: said to be stopped", name)
			}
			close(stop)
		} else {
			if rung {
				t.Errorf("%s: woken", name)
			}
			close(stop)
			if <-ended {
				t.Errorf("%s: did not see that it is to stop", name)
			}
		}
	}
}

func TestIdleTimer_Expires(t *testing.T) {
	t.Parallel()
	s := newIdleTimer()
	s.end(time.Time{}) // not parked: the next begin must not see a wake-up
	until := time.Now().Add(3 * time.Millisecond)
	if !s.begin(until, noWork, nil) || time.Now().Before(until) {
		t.Error("it ended before its time, or said that it was stopped")
	}
	if !s.begin(time.Time{}, func() bool { return true }, nil) { // without work it would block forever
		t.Error("it says that it was stopped, and there was work")
	}
}
