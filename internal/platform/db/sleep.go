package db

import (
	"math"
	"sync/atomic"
	"time"
)

// A sleep is what one goroutine rests in until there is something that cannot wait. Who brings something that can wait until then does not
// wake it: that would cost more than most of what is brought.
type sleep struct {
	base  time.Time
	until atomic.Int64 // nanoseconds after base; awake while it does not sleep
	bell  chan struct{}
	timer *time.Timer
}

const awake = math.MinInt64

func newSleep() *sleep {
	s := &sleep{base: time.Now(), bell: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	s.until.Store(awake)
	return s
}

// begin rests until that time, zero for no end, or until it is woken, if there is no work; false where stop is closed. It may end before its time.
func (s *sleep) begin(until time.Time, work func() bool, stop <-chan struct{}) (goOn bool) {
	end, left := int64(math.MaxInt64), time.Hour
	if !until.IsZero() {
		end, left = int64(until.Sub(s.base)), time.Until(until)
	}
	s.until.Store(end)
	defer s.until.Store(awake)
	if work() { // brought by who could not see that this sleeps
		return true
	}
	s.timer.Reset(left)
	defer s.timer.Stop()
	select {
	case <-s.bell:
	case <-s.timer.C:
	case <-stop:
		return false
	}
	return true
}

// end wakes it unless it wakes by itself before that time; a zero time is at once.
func (s *sleep) end(by time.Time) {
	at := int64(awake + 1)
	if !by.IsZero() {
		at = int64(by.Sub(s.base))
	}
	if at >= s.until.Load() {
		return
	}
	select {
	case s.bell <- struct{}{}:
	default:
	}
}
