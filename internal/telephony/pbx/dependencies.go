package pbx

import (
	"context"

	"soniq/internal/platform/observe"
	"soniq/internal/protocol/stir"
)

// Interfaces to packages that stand above this one, and the observers of the switch.

// CallerNames returns the display name of an external caller who sends no name; empty if unknown. Every such call waits for it.
type CallerNames interface {
	CallerName(ctx context.Context, org, number string) string
}

// Verifier checks the PASSporTs of a call from a trunk (RFC 8224). Every such call waits for it; it has to limit its own time.
type Verifier interface {
	Verify(ctx context.Context, signatures []string, from, to string) stir.Result
}

// StorageQuota returns the API error if an organisation has reached its limit of recordings.
type StorageQuota interface {
	CheckStorage(ctx context.Context, org string) error
}

// Scripts returns the script for a target; nil if there is none.
type Scripts interface {
	Attend(l Handoff) Script
}

// RingObserver is notified of every user that a call rings. It must not block.
type RingObserver interface {
	UserRinging(r Ring)
}

// Observe adds an observer. It panics if o is no RingObserver. Call it before the first call.
func (s *Switch) Observe(o any) { observe.Require("pbx", o, observe.Add(&s.ringObservers, o)) }
