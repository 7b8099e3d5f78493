package call

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Interfaces to packages that are built after this one or stand above it. Each field of Config may be nil: the feature does not exist then.

// Destinations resolves the destinations that requests name.
type Destinations interface {
	// ParseDestination reads an external number, an extension ("ext:100") or a sip: address. It returns the destination for the switch, or
	// an
	// *op.Error about the member "to".
	ParseDestination(ctx context.Context, org, to string) (string, error)
	// ParseNumber reads a number in the notation of the organisation's country, and returns it in E.164.
	ParseNumber(ctx context.Context, org, text string) (e164 string, ok bool, err error)
	// CheckTarget returns the reason why a script target such as queue:que_… cannot be used, or "".
	CheckTarget(ctx context.Context, org, to string) (wrong string, err error)
}

// Prompts reports whether the organisation has an audio file.
type Prompts interface {
	HasAudio(ctx context.Context, org, id string) (bool, error)
}

// WebhookDeliveries returns the webhook deliveries of a call as entries of its timeline.
type WebhookDeliveries interface {
	WebhookDeliveries(ctx context.Context, org, callID string) ([]TimelineEntry, error)
}

// Transcripts returns the values of expand=summary and expand=transcript, or nil if the call has none.
type Transcripts interface {
	Summary(ctx context.Context, org, callID string) (any, error)
	Transcript(ctx context.Context, org, callID string) (any, error)
}

// Contacts connects calls with contacts and CRM systems.
type Contacts interface {
	// LookupContact returns the contact of an external number if it is known without waiting, else nil.
	LookupContact(ctx context.Context, org, number string) *event.Contact
	// NoteSyncs returns the synchronisation state of notes in the connected CRM systems.
	NoteSyncs(ctx context.Context, q db.Querier, org string, notes []string) (map[string][]NoteSync, error)
}

// Queues returns data of queues about calls.
type Queues interface {
	// QueueWaits returns how long the callers of calls in progress have waited.
	QueueWaits(ctx context.Context, q db.Querier, org string, calls []string) (map[string]QueueWait, error)
	// OfferedAgents returns the agents that were rung for calls.
	OfferedAgents(ctx context.Context, q db.Querier, org string, calls []string) (map[string][]OfferedAgent, error)
	// QueueNames returns the names of queues.
	QueueNames(ctx context.Context, q db.Querier, org string, ids []string) (map[string]string, error)
}
