package sms

import (
	"fmt"
	"testing"
	"time"
)

func TestAPaceGivesEachMessageOneTurn(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Unix(1_800_000_000, 0)
	limits := []limit{{"carrier", 10}, {"number", 5}}
	for i := range 10 {
		want := time.Duration(i) * 200 * time.Millisecond
		if wait := p.take(now, fmt.Sprint(i), 1, limits...); wait != want {
			t.Errorf("message %d waits %s, not %s", i, wait, want)
		}
	}
	if wait := p.take(now.Add(200*time.Millisecond), "1", 1, limits...); wait != 0 {
		t.Errorf("at its turn a message still waits %s", wait)
	}
	if wait := p.take(now.Add(400*time.Millisecond), "other", 1, limit{"carrier", 10}, limit{"other number", 5}); wait > 600*time.Millisecond {
		t.Errorf("another number waits %s for the carrier", wait)
	}
}

// Messages that missed their reserved times, because the carrier was unavailable, are not sent all at once.
func TestAPaceHoldsAfterAStandstill(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Unix(1_800_000_000, 0)
	l := limit{"carrier", 10}
	for i := range 100 {
		p.take(now, fmt.Sprint(i), 1, l)
	}
	now = now.Add(time.Minute)
	gone := 0
	for range 20 { // one second in steps
		for i := range 100 {
			if _, waits := p.turns[fmt.Sprint(i)]; waits && p.take(now, fmt.Sprint(i), 1, l) == 0 {
				gone++
			}
		}
		now = now.Add(50 * time.Millisecond)
	}
	if gone < 9 || gone > 12 {
		t.Errorf("%d messages went in a second, not 10", gone)
	}
}
