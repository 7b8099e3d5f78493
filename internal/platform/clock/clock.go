// Package clock gives packages the time of day through an interface, so that tests can set it.
package clock

import "time"

// Clock reports the current time. Implementations are safe for concurrent use.
type Clock interface {
	Now() time.Time
}

// System returns the machine's clock.
func System() Clock { return Func(time.Now) }

// Func adapts a function, usually one of a test, to Clock.
type Func func() time.Time

// Now returns the result of the function.
func (f Func) Now() time.Time { return f() }

// OrSystem returns c, or the machine's clock if c is nil. Constructors call it for an optional Config.Clock.
func OrSystem(c Clock) Clock {
	if c == nil {
		return System()
	}
	return c
}
