package eventstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
)

// Event is a webhook event as a record.
type Event struct {
	ID         string     `json:"id"`
	Sequence   int64      `json:"sequence"`
	Kind       string     `json:"kind" example:"call.ended"`
	OrgID      string     `json:"org_id"`
	CallID     *string    `json:"call_id"`
	OccurredAt db.Time    `json:"occurred_at"`
	Data       op.Members `json:"data"`
}

// ListIn is the request of events.list.
type ListIn struct {
	Kind   []string `query:"kind" doc:"Only these kinds" maxItems:"50"`
	CallID string   `query:"call_id" maxLength:"40"`
	After  string   `query:"after_sequence" maxLength:"20" doc:"Only those behind this sequence"`
	op.Span
	op.Paging
}

// List returns the webhook events of the last 30 days in order. The end of a recorded call is listed once, with
// recording and summary.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Event]], error) {
	after, err := in.startAfter(ctx)
	if err != nil {
		return nil, err
	}
	view, err := visibility.From(ctx, s.cfg.Outbox.DB.Read(ctx))
	if err != nil {
		return nil, err
	}
	p, _ := access.From(ctx)
	filter, err := in.filter(p, view)
	if err != nil {
		return nil, err
	}
	text, args := filter().And("sequence > ?", after).Page("sequence", false, nil, "", in.Limit).SQL()
	rows, err := s.cfg.Outbox.DB.Read(ctx).Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	defer rows.Close()
	var all []Event
	for rows.Next() {
		e := Event{OrgID: access.Org(ctx)}
		var call db.Null
		var body string
		if err := rows.Scan(&e.ID, &e.Sequence, &e.Kind, &call, &body, &e.OccurredAt); err != nil {
			return nil, fmt.Errorf("list events: %w", err)
		}
		e.CallID = call.Ptr()
		if err := json.Unmarshal([]byte(event.Event{Body: body}.Data()), &e.Data); err != nil {
			return nil, fmt.Errorf("read event %s: %w", e.ID, err)
		}
		all = append(all, e)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	out := op.Paged(ctx, in.Paging, all, func(e Event) op.Position { return op.Position{Int: e.Sequence, ID: e.ID} })
	return op.WithTotal(out, in.Paging, func() (int, error) { return filter().Count(ctx, s.cfg.Outbox.DB.Read(ctx)) })
}

// startAfter returns the sequence after which the page begins.
func (in *ListIn) startAfter(ctx context.Context) (int64, error) {
	p, err := in.Paging.After(ctx)
	if err != nil || in.After == "" {
		return p.Int, err
	}
	n, err := strconv.ParseInt(in.After, 10, 64)
	if err != nil || n < 0 {
		return 0, badQuery(op.Field("after_sequence", "invalid_value", "must be the sequence of an event"))
	}
	return max(n, p.Int), nil
}

// filter returns the list statement. It lists only kinds that the principal may read, and refuses others that are asked for by name.
func (in *ListIn) filter(p access.Principal, view visibility.View) (func() *db.Filter, error) {
	since, until, err := in.Times()
	if err == nil {
		err = (&In{Events: in.Kind}).check()
	}
	if err == nil {
		err = checkReadable(in.Kind, p.Scopes)
	}
	names := in.Kind
	if len(names) == 0 {
		for _, k := range event.Readable(kinds(), p.Scopes) {
			names = append(names, string(k))
		}
	}
	return func() *db.Filter {
		const text = `SELECT id, sequence, kind, call_id, body, occurred_at FROM events
			WHERE org_id = $1 AND sequence IS NOT NULL AND audience IN ('all', 'enriched')`
		return view.NarrowOptional(db.Where(text, p.OrgID), "call_id").In("kind", names).Equal("call_id", in.CallID).
			Between("occurred_at", since, until)
	}, err
}

// checkReadable returns an error if one of the kinds needs a scope that is not held.
func checkReadable(names []string, held []access.Scope) error {
	for _, name := range names {
		if need := event.Kind(name).Need(); !need.MetBy(held) {
			return &op.Error{Code: "insufficient_scope", Detail: name + " needs " + need.String() +
				"; leave it out, or use a key that holds it", Extra: map[string]any{"required_scopes": need.Alternatives()[0]}}
		}
	}
	return nil
}
