package clock

import (
	"sync"
	"time"
)

const (
	// maxJump is the jump of the clock from which on deletion by age is suspended.
	maxJump = 24 * time.Hour
	// trustAfter is the time for which a clock must run on after a jump until its time replaces the expected time.
	trustAfter = 6 * time.Hour
)

// Reading returns the time of day, and the time since any fixed moment by a clock that nobody sets.
type Reading func() (wall time.Time, elapsed time.Duration)

// SystemReading returns a Reading of the machine's clocks.
func SystemReading() Reading {
	start := time.Now()
	return func() (time.Time, time.Duration) {
		now := time.Now()
		return now.Round(0), now.Sub(start) // Round removes the monotonic reading
	}
}

// DeletionGate returns an error while nothing may be deleted by age, because the clock is not trusted. nil allows deletion.
type DeletionGate func() error

// Check returns the error of the gate.
func (g DeletionGate) Check() error {
	if g == nil {
		return nil
	}
	return g()
}

// Trust decides whether the clock may be trusted with deletion by age. A clock that is more than a day ahead of the expected time is not
// trusted for six hours, unless the operator confirms it. A clock behind the expected time is trusted, because less is then old enough.
// Trust is safe for concurrent use.
type Trust struct {
	read Reading

	mu      sync.Mutex    // guards the fields below
	wall    time.Time     // last trusted time
	elapsed time.Duration // monotonic time of wall
	jump    jump          // of the latest reading
	since   time.Duration // monotonic time of the first reading with this jump
}

// jump is the direction in which the clock differs from the expected time by more than maxJump; 0: it does not.
type jump int

func jumpOf(ahead time.Duration) jump {
	switch {
	case ahead > maxJump:
		return 1
	case ahead < -maxJump:
		return -1
	}
	return 0
}

// NewTrust returns a Trust with the last trusted time of an earlier process; zero if there was none.
func NewTrust(last time.Time, read Reading) *Trust {
	t := &Trust{read: read, wall: last}
	wall, elapsed := read()
	t.elapsed = elapsed
	if last.IsZero() {
		t.wall = wall
	}
	return t
}

// Doubt is the reason why the clock is not trusted.
type Doubt struct {
	Expected time.Time     // time of day by the last trusted time and the known time since then
	Now      time.Time     // time of day that the clock shows
	RanOn    time.Duration // for how long the clock has run on
	Remains  time.Duration // until it is trusted
}

// Check returns the current time if it is trusted, else the reason.
func (t *Trust) Check() (now time.Time, doubt *Doubt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, elapsed := t.read()
	expected := t.wall.Add(elapsed - t.elapsed)
	seen := jumpOf(now.Sub(expected))
	if seen != t.jump {
		t.jump, t.since = seen, elapsed
	}
	left := trustAfter - (elapsed - t.since)
	switch {
	case seen == 0 || left <= 0:
		t.accept(now, elapsed)
	case seen > 0:
		return now, &Doubt{Expected: expected, Now: now, RanOn: elapsed - t.since, Remains: left}
	}
	return now, nil
}

// Resume continues the doubt of an earlier process, whose clock was not trusted at a time and had run on for some time by then. It has no
// effect if the clock has been set by more than a day since then, or is trusted.
func (t *Trust) Resume(at time.Time, ranOn time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, elapsed := t.read()
	if jumpOf(now.Sub(t.wall.Add(elapsed-t.elapsed))) > 0 && jumpOf(now.Sub(at)) == 0 {
		t.jump, t.since = 1, elapsed-max(ranOn, 0)
	}
}

// Learn trusts the clock if it agrees to a day with a time that another node trusts, and reports whether it does.
func (t *Trust) Learn(trusted time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, elapsed := t.read()
	if jumpOf(now.Sub(trusted)) != 0 {
		return false
	}
	t.accept(now, elapsed)
	return true
}

// Last returns the last trusted time. It is not that of a clock that went back by more than a day less than six hours ago: a machine
// without a battery starts with a time long ago, until it asks the network.
func (t *Trust) Last() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wall
}

// Confirm trusts the clock as it is now, and returns its time.
func (t *Trust) Confirm() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.accept(t.read())
	return t.wall
}

func (t *Trust) accept(wall time.Time, elapsed time.Duration) {
	t.wall, t.elapsed, t.jump = wall, elapsed, 0
}
