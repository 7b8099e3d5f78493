package clock

import (
	"sync"
	"time"
)

// started is the time from which aligned tickers count.
var started = time.Now()

// Ticker sends the time to C at each multiple of its interval since the process started. Tickers whose intervals are
// multiples of each other tick together, so that an idle process wakes up less often than with as many time.Tickers.
// A tick is dropped if the one before was not received.
type Ticker struct {
	C <-chan time.Time

	mu      sync.Mutex // guards the fields below
	timer   *time.Timer
	stopped bool
}

// NewTicker returns a running ticker. The first tick comes within one interval.
func NewTicker(interval time.Duration) *Ticker {
	c := make(chan time.Time, 1)
	t := &Ticker{C: c}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(Until(interval), func() { t.tick(c, interval) })
	return t
}

func (t *Ticker) tick(c chan<- time.Time, interval time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	select {
	case c <- time.Now():
	default:
	}
	t.timer.Reset(Until(interval))
}

// Stop stops the ticker. C is not closed, and may still hold a tick.
func (t *Ticker) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
}

// Until returns the time until the next multiple of an interval since the process started, more than zero.
func Until(interval time.Duration) time.Duration {
	return interval - time.Since(started)%interval
}
