package rig

import (
	"testing"
	"time"

	"soniq/e2e/limit"
)

// Until polls ok until it returns true. It fails the test after limit.Hang(usual).
func Until(t testing.TB, what string, usual time.Duration, ok func() bool) {
	t.Helper()
	if !Eventually(usual, ok) {
		t.Fatalf("%s: not within %s", what, limit.Hang(usual))
	}
}

// Eventually polls ok, less often the longer it takes, because a request costs the server as much as a call does. It
// returns true once ok returns true, and false after limit.Hang(usual).
func Eventually(usual time.Duration, ok func() bool) bool {
	hang := time.NewTimer(limit.Hang(usual))
	defer hang.Stop()
	const shortest, longest = 10 * time.Millisecond, 250 * time.Millisecond
	pause := time.NewTimer(shortest)
	defer pause.Stop()
	for next := shortest; !ok(); {
		select {
		case <-hang.C:
			return false
		case <-pause.C:
			next = min(next*5/4, longest)
			pause.Reset(next)
		}
	}
	return true
}
