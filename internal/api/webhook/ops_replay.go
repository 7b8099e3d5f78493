package webhook

import (
	"context"
	"errors"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
)

// RangeIn is the request of webhooks.replay.
type RangeIn struct {
	GetIn
	Body RangeBody
}

// RangeBody selects a time range: since is inclusive, until exclusive.
type RangeBody struct {
	Since      string   `json:"since" minLength:"1" maxLength:"40" doc:"RFC 3339, or a day" example:"2026-01-31T09:30:00Z"`
	Until      string   `json:"until,omitempty" maxLength:"40" doc:"Now unless given"`
	Events     []string `json:"events,omitempty" maxItems:"50" doc:"Only these kinds"`
	OnlyFailed *bool    `json:"only_failed,omitempty" doc:"Only events that this webhook asked for, has not received and is not being sent, those from while it was disabled among them; true unless given. false: all it asked for, also what it has received, and what is older than the webhook"`
	After      int64    `json:"after_sequence,omitempty" minimum:"0" doc:"Only events behind this sequence: next_after_sequence of an earlier answer"`
}

// RangeOut is the result of a range replay.
type RangeOut struct {
	Queued            int    `json:"queued" doc:"Deliveries that were made"`
	NextAfterSequence *int64 `json:"next_after_sequence" doc:"There are more events in the range: ask again with it; null at the end"`
}

// Limits of deliveries per request, and per transaction.
const (
	maxReplay   = 10_000
	replayBatch = 250
)

// replayRange selects the events to replay.
type replayRange struct {
	since, until db.Time
	kinds        []string
	failedOnly   bool
	after        int64
}

// ReplayRange sends the events of a range again, in order, in new deliveries.
func (s *Service) ReplayRange(ctx context.Context, in *RangeIn) (*op.Out[RangeOut], error) {
	e, err := s.findEndpoint(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	x, wrong := in.Body.span()
	if len(wrong) > 0 {
		return nil, op.Invalid(wrong...)
	}
	if x.failedOnly && x.since.Before(e.CreatedAt.Time) {
		x.since = e.CreatedAt
	}
	var out RangeOut
	for out.Queued < s.replayMost {
		n, more, err := s.replayNext(ctx, in.ID, &x)
		if err != nil {
			return nil, err
		}
		if out.Queued += n; !more {
			return op.OK(out)
		}
	}
	out.NextAfterSequence = &x.after
	return op.OK(out)
}

func (b RangeBody) span() (x replayRange, wrong []op.Violation) {
	x = replayRange{kinds: b.Events, failedOnly: b.OnlyFailed == nil || *b.OnlyFailed, after: b.After}
	var err error
	var bad *op.Error
	if x.since, x.until, err = (op.Span{Since: b.Since, Until: b.Until}).Times(); errors.As(err, &bad) {
		wrong = bad.Fields
	}
	if len(wrong) == 0 && !x.until.IsZero() && !x.since.Before(x.until.Time) {
		wrong = append(wrong, op.Field("until", "out_of_range", "must be later than since"))
	}
	if len(b.Events) > 0 {
		wrong = append(wrong, checkEvents(b.Events)...)
	}
	return x, wrong
}

// replayNext creates the deliveries of the next batch of a range, in its own transaction, and advances the range.
// more reports that there may be further events.
func (s *Service) replayNext(ctx context.Context, id string, x *replayRange) (queued int, more bool, err error) {
	var last int64
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := event.LockOrder(ctx, tx); err != nil { // so that a release cannot miss them
			return err
		}
		e, err := s.findEndpoint(ctx, id)
		if err != nil {
			return err
		}
		if e.Status == Disabled {
			return op.State("the webhook is disabled; make it active first", string(e.Status), "update")
		}
		batch, err := eventsInRange(ctx, tx, e, x)
		if err != nil {
			return err
		}
		if more = len(batch) == replayBatch; len(batch) > 0 {
			last = batch[len(batch)-1].Sequence
		}
		all, err := s.replayDeliveries(ctx, tx, e, batch, x.failedOnly)
		queued = len(all)
		if err != nil {
			return err
		}
		return s.insertAndEnqueue(ctx, tx, all...)
	})
	if err == nil && last > 0 {
		x.after = last
	}
	return queued, more, err
}

// eventsInRange reads the next numbered events of a range. Of the two timings of call.ended it reads the endpoint's.
func eventsInRange(ctx context.Context, tx db.Querier, e *endpoint, x *replayRange) ([]event.Event, error) {
	audience := string(event.AudienceEnriched)
	if e.Timing == immediate {
		audience = string(event.AudienceImmediate)
	}
	text, args := db.Where(`SELECT id, sequence, kind, call_id, audience, body, occurred_at FROM events WHERE org_id = $1`, e.Org).
		And("sequence > ?", x.after).Between("occurred_at", x.since, x.until).In("kind", kindFilter(x.kinds)).
		In("audience", []string{string(event.AudienceAll), audience}).Page("sequence", false, nil, "", replayBatch-1).SQL()
	rows, err := tx.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("read events to send again: %w", err)
	}
	defer rows.Close()
	var all []event.Event
	for rows.Next() {
		ev := event.Event{OrgID: e.Org}
		var call db.Null
		if err := rows.Scan(&ev.ID, &ev.Sequence, &ev.Kind, &call, &ev.Audience, &ev.Body, &ev.OccurredAt); err != nil {
			return nil, err
		}
		ev.CallID = string(call)
		all = append(all, ev)
	}
	return all, rows.Err()
}

// kindFilter returns the requested kinds; nil if all are requested.
func kindFilter(kinds []string) []string {
	for _, k := range kinds {
		if k == "*" {
			return nil
		}
	}
	return kinds
}

// replayDeliveries returns deliveries of the events that are to be sent again.
func (s *Service) replayDeliveries(ctx context.Context, tx db.Querier, e *endpoint, batch []event.Event, failedOnly bool) ([]*delivery,
	error) {
	earlier, err := s.earlierDeliveries(ctx, tx, e, batch)
	if err != nil {
		return nil, err
	}
	known := newCallSubjectCache()
	var all []*delivery
	for _, ev := range batch {
		before := earlier[ev.ID]
		if failedOnly && before.deliveredOrPending {
			continue
		}
		d, err := s.newDelivery(ctx, tx, known, e, ev)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		d.ReplayOf = before.id
		all = append(all, d)
	}
	return all, nil
}

// earlierDelivery is the state of an event at an endpoint.
type earlierDelivery struct {
	id                 string // of the newest delivery
	deliveredOrPending bool   // it was received, or is in progress
}

func (s *Service) earlierDeliveries(ctx context.Context, tx db.Querier, e *endpoint, batch []event.Event) (map[string]earlierDelivery,
	error) {
	all := map[string]earlierDelivery{}
	if len(batch) == 0 {
		return all, nil
	}
	ids := make([]string, len(batch))
	for i, ev := range batch {
		ids[i] = ev.ID
	}
	text, args := db.Where(`SELECT event_id, id, status, finished_at FROM webhook_deliveries WHERE org_id = $1`, e.Org).
		Equal("webhook_id", e.ID).In("event_id", ids).SQL()
	rows, err := tx.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("read earlier deliveries: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var event, id, status string
		var finished db.Time
		if err := rows.Scan(&event, &id, &status, &finished); err != nil {
			return nil, err
		}
		x := all[event]
		x.id, x.deliveredOrPending = max(x.id, id), x.deliveredOrPending || finished.IsZero() || status == succeeded
		all[event] = x
	}
	return all, rows.Err()
}
