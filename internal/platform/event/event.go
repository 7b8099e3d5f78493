// Package event is how the platform tells what happened: the kinds of events with their payloads, and the outbox
// they are committed to together with the facts they report.
package event

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
)

// A Kind names an event, such as call.ended.
type Kind string

// A Payload is the data of one kind.
type Payload interface {
	Kind() Kind
	// Call is the call the event belongs to, or "".
	Call() string
}

// An Audience says for whom an event is.
type Audience string

// The audiences. A call that ended is announced twice in the outbox: at once for webhooks that asked for that, and
// for everybody else when recording and summary are there.
const (
	Everybody Audience = "all"
	Immediate Audience = "immediate"
	Enriched  Audience = "enriched"
	Streamed  Audience = "stream" // the live stream only, never webhooks
)

// An Event is a committed fact. Body is what receivers get, byte for byte.
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

// Data is the data of the event without its envelope, as JSON on one line.
func (e Event) Data() string {
	_, data, _ := strings.Cut(e.Body, `,"data":`)
	return strings.TrimSuffix(data, "}")
}

// Outbox publishes and hands out events.
type Outbox struct {
	DB  *db.DB
	Bus *bus.Bus
	Now func() db.Time

	reader    atomic.Pointer[Reader] // of this node, where that alone writes to the database; see write.go
	followers followers
}

// Wake is the subject on which the outbox is told that events were committed.
const Wake = "wake.events"

// Publish writes the event in the caller's transaction: it is announced when, and only when, that commits. Live payloads go to
// the live stream only.
func (o *Outbox) Publish(ctx context.Context, tx db.Querier, org string, p Payload) error {
	if _, live := p.(Live); live {
		return o.PublishTo(ctx, tx, org, Streamed, p)
	}
	return o.PublishTo(ctx, tx, org, Everybody, p)
}

// Tell sends an ephemeral event to the streams that are open now. It is written nowhere.
func (o *Outbox) Tell(org string, p Live) error {
	body, err := Encode(p)
	if err != nil {
		return fmt.Errorf("tell %s: %w", p.Kind(), err)
	}
	o.Bus.Publish(Stream, Event{OrgID: org, Kind: p.Kind(), CallID: p.Call(), Audience: Streamed, Body: string(body), OccurredAt: o.Now()})
	return nil
}

// PublishTo is Publish for a narrower audience.
func (o *Outbox) PublishTo(ctx context.Context, tx db.Querier, org string, a Audience, p Payload) error {
	return o.publish(ctx, tx, org, db.NewID("evt"), a, p)
}

// PublishAs is Publish with an id that the caller made, such as db.NewID("evt").
func (o *Outbox) PublishAs(ctx context.Context, tx db.Querier, org, id string, p Payload) error {
	return o.publish(ctx, tx, org, id, Everybody, p)
}

func (o *Outbox) publish(ctx context.Context, tx db.Querier, org, id string, a Audience, p Payload) error {
	body, err := Encode(p)
	if err != nil {
		return fmt.Errorf("publish %s: %w", p.Kind(), err)
	}
	return db.Gather(ctx, tx, o, Event{OrgID: org, ID: id, Kind: p.Kind(), CallID: p.Call(), Audience: a, Body: string(body), OccurredAt: o.Now()})
}
