package db

import (
	"math"
	"sync/atomic"
	"time"
)

// idleTimer parks the writer goroutine until the earliest deadline. Work with a later deadline does not wake it,
// because a wake-up costs more than most writes.
type idleTimer struct {
	base  time.Time
	until atomic.Int64 // nanoseconds after base; awake if not parked
	bell  chan struct{}
	timer *time.Timer
}

const awake = math.MinInt64

func newIdleTimer() *idleTimer {
	s := &idleTimer{base: time.Now(), bell: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	s.until.Store(awake)
	return s
}

// begin parks until the given time, or until it is woken; a zero time means no limit. It returns at once if there is
// work. It returns false if stop is closed. It may return early.
func (s *idleTimer) begin(until time.Time, work func() bool, stop <-chan struct{}) (goOn bool) {
	end, left := int64(math.MaxInt64), time.Hour
	if !until.IsZero() {
		end, left = int64(until.Sub(s.base)), time.Until(until)
	}
	s.until.Store(end)
	defer s.until.Store(awake)
	if work() { // added by a goroutine that did not see the timer parked
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

// end wakes the timer if its time is after by. A zero time wakes it at once.
func (s *idleTimer) end(by time.Time) {
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
