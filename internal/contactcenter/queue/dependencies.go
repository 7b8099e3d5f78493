package queue

import (
	"context"

	"soniq/internal/platform/db"
)

// Interfaces to packages that are built after this one or stand above it.

// Prompts reports whether the organisation has an audio file.
type Prompts interface {
	HasAudio(ctx context.Context, org, id string) (bool, error)
}

// Destinations checks destinations and extensions.
type Destinations interface {
	// CheckDestination returns the problem of a destination such as queue:que_… or ext:101; "" if it is valid.
	CheckDestination(ctx context.Context, org, to string) (wrong string, err error)
	// IsReserved reports whether an extension is reserved in a country, such as for an emergency number.
	IsReserved(country, extension string) bool
}

// Numbers returns and changes the numbers that route to a queue.
type Numbers interface {
	// IDsOfQueue returns the ids of the numbers.
	IDsOfQueue(ctx context.Context, q db.Querier, org, queue string) ([]string, error)
	// MoveQueue makes the numbers of one queue route to another.
	MoveQueue(ctx context.Context, tx db.Querier, org, from, to string) error
}

// Flows returns the ids of the flows that mention an object.
type Flows interface {
	UsedBy(ctx context.Context, q db.Querier, org, id string) ([]string, error)
}

// PendingReleases reports whether a phone of an agent has not yet answered this node's CANCEL or BYE.
type PendingReleases interface {
	HasPendingRelease(user string) bool
}
