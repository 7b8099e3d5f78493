package sip

import (
	"testing"
	"time"
)

func TestMuchAtOnceIsNotCalm(t *testing.T) {
	t.Parallel()
	var c calm
	now := time.Minute
	for n := range 2 * len(c.last) {
		now += time.Microsecond
		if got, want := c.came(now), n < len(c.last); got != want {
			t.Errorf("message %d: calm %t", n, got)
		}
	}
	now += calmFor + 1
	for n := range len(c.last) {
		if !c.came(now) {
			t.Errorf("message %d after a pause: not calm", n)
		}
	}
	if c.came(now) {
		t.Error("calm with one more")
	}
}
