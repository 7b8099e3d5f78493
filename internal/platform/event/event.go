// Package event has the kinds of events with their payloads, and the transactional outbox: events are committed
// together with the change that they report.
package event

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
)

// Kind is the name of a kind of event, such as call.ended.
type Kind string

// Payload is the data of one kind of event.
type Payload interface {
	Kind() Kind
	// Call returns the ID of the event's call; empty if it has none.
	Call() string
}

// Audience selects the receivers of an event.
type Audience string

// Audiences. The end of a call is written to the outbox twice: at once for webhooks that request it, and for all
// others when recording and summary are ready.
const (
	AudienceAll       Audience = "all"
	AudienceImmediate Audience = "immediate"
	AudienceEnriched  Audience = "enriched"
	AudienceStream    Audience = "stream" // event stream only, never webhooks
)

// Event is a committed event. Receivers get Body byte for byte.
type Event struct {
	OrgID      string
	ID         string
	Sequence   int64
	Kind       Kind
	CallID     string
	Audience   Audience
	Body       string
	OccurredAt db.Time
}

// Data returns the data of the event without its envelope, as JSON on one line.
func (e Event) Data() string {
	_, data, _ := strings.Cut(e.Body, `,"data":`)
	return strings.TrimSuffix(data, "}")
}

// Outbox writes, numbers and distributes events.
type Outbox struct {
	DB    *db.DB
	Bus   *bus.Bus
	Clock clock.Clock // nil: the system clock

	reader      atomic.Pointer[Reader] // reader of this node if no other node writes to the database; see write.go
	subscribers subscribers
}

// now returns the time of the outbox's clock.
func (o *Outbox) now() db.Time { return db.At(clock.OrSystem(o.Clock).Now()) }

// Wake is the bus subject that reports committed events to the reader.
const Wake = "wake.events"

// Publish writes the event in the caller's transaction. The event is sent if and only if that transaction commits. A
// StreamPayload goes to event streams only.
func (o *Outbox) Publish(ctx context.Context, tx db.Querier, org string, p Payload) error {
	if _, live := p.(StreamPayload); live {
		return o.PublishTo(ctx, tx, org, AudienceStream, p)
	}
	return o.PublishTo(ctx, tx, org, AudienceAll, p)
}

// PublishEphemeral sends an event to the event streams that are open now. It is not stored.
func (o *Outbox) PublishEphemeral(org string, p StreamPayload) error {
	body, err := Encode(p)
	if err != nil {
		return fmt.Errorf("tell %s: %w", p.Kind(), err)
	}
	o.Bus.Publish(Stream, Event{OrgID: org, Kind: p.Kind(), CallID: p.Call(), Audience: AudienceStream, Body: string(body),
		OccurredAt: o.now()})
	return nil
}

// PublishTo is Publish with an audience.
func (o *Outbox) PublishTo(ctx context.Context, tx db.Querier, org string, a Audience, p Payload) error {
	return o.publish(ctx, tx, org, db.NewID("evt"), a, p)
}

// PublishAs is Publish with an ID created by the caller, such as db.NewID("evt").
func (o *Outbox) PublishAs(ctx context.Context, tx db.Querier, org, id string, p Payload) error {
	return o.publish(ctx, tx, org, id, AudienceAll, p)
}

func (o *Outbox) publish(ctx context.Context, tx db.Querier, org, id string, a Audience, p Payload) error {
	body, err := Encode(p)
	if err != nil {
		return fmt.Errorf("publish %s: %w", p.Kind(), err)
	}
	return db.Batch(ctx, tx, o, Event{OrgID: org, ID: id, Kind: p.Kind(), CallID: p.Call(), Audience: a, Body: string(body),
		OccurredAt: o.now()})
}
