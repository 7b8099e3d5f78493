package contact

import (
	"context"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// Interfaces to packages that are built after this one or stand above it.

// Sources returns the systems of an organisation that lookups search, in the order of their priority.
type Sources interface {
	Sources(ctx context.Context, org string) ([]Source, error)
}

// Systems connects contacts with their records in connected systems.
type Systems interface {
	// Refs returns the records of contacts in connected systems, by contact.
	Refs(ctx context.Context, q db.Querier, org string, contacts []string) (map[string][]Ref, error)
	// CheckContactTargets returns violations for those of the named connections that cannot be written to.
	CheckContactTargets(ctx context.Context, org string, connections []string) ([]op.Violation, error)
	// NoteSyncs returns the sync status of notes in connected systems.
	NoteSyncs(ctx context.Context, q db.Querier, org string, notes []string) (map[string][]call.NoteSync, error)
}

// Calls returns data of calls for screen pops.
type Calls interface {
	// CallNumber returns the external number of a call; db.ErrNone if there is no such call.
	CallNumber(ctx context.Context, org, callID string) (number string, err error)
	// CallQueue returns the queue through which a call came; nil if there is none, or the call is unknown.
	CallQueue(ctx context.Context, org, callID string) (*call.Named, error)
	// CallHistory returns earlier calls and the memory of a number. memory reports whether the caller may read the memory.
	CallHistory(ctx context.Context, org, number string, memory bool) (CallHistory, error)
}

// Memory deletes the memory of a number in E.164.
type Memory interface {
	EraseNumber(ctx context.Context, tx db.Querier, org, number string) error
}

// TimelineSource returns the items of another package for the timeline of a contact.
type TimelineSource interface {
	TimelineItems(ctx context.Context, org string, q TimelineQuery) ([]Item, error)
}

// Timer returns a channel that receives after a time.
type Timer interface {
	After(limit time.Duration) <-chan time.Time
}

type systemTimer struct{}

func (systemTimer) After(limit time.Duration) <-chan time.Time { return time.After(limit) }
