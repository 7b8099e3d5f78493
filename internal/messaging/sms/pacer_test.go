package sms

import (
	"fmt"
	"testing"
	"time"
)

func TestPacer_ReservesOnce(t *testing.T) {
	t.Parallel()
	var p sendPacer
	now := time.Unix(1_800_000_000, 0)
	limits := []rateLimit{{"carrier", 10}, {"number", 5}}
	for i := range 10 {
		want := time.Duration(i) * 200 * time.Millisecond
		if wait := p.reserve(now, fmt.Sprint(i), 1, limits...); wait != want {
			t.Errorf("message %d waits %s, not %s", i, wait, want)
		}
	}
	if wait := p.reserve(now.Add(200*time.Millisecond), "1", 1, limits...); wait != 0 {
		t.Errorf("at its turn a message still waits %s", wait)
	}
	if wait := p.reserve(now.Add(400*time.Millisecond), "other", 1, rateLimit{"carrier", 10}, rateLimit{"other number", 5}); wait > 600*time.Millisecond {
		t.Errorf("another number waits %s for the carrier", wait)
	}
}

// Messages that missed their reserved times, because the carrier was unavailable, are not sent all at once.
func TestPacer_NoBurstAfterOutage(t *testing.T) {
	t.Parallel()
	var p sendPacer
	now := time.Unix(1_800_000_000, 0)
	l := rateLimit{"carrier", 10}
	for i := range 100 {
		p.reserve(now, fmt.Sprint(i), 1, l)
	}
	now = now.Add(time.Minute)
	gone := 0
	for range 20 { // one second in steps
		for i := range 100 {
			if _, waits := p.waiting[fmt.Sprint(i)]; waits && p.reserve(now, fmt.Sprint(i), 1, l) == 0 {
				gone++
			}
		}
		now = now.Add(50 * time.Millisecond)
	}
	if gone < 9 || gone > 12 {
		t.Errorf("%d messages went in a second, not 10", gone)
	}
}
