package webhook

import (
	"context"
	"fmt"
	"strings"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
)

// DeliveriesIn is the request of webhooks.deliveries.list.
type DeliveriesIn struct {
	GetIn
	op.Paging
	op.Span
	Status         []string `query:"status" enum:"pending,delivering,retrying,succeeded,exhausted,discarded" doc:"Only in these states"`
	Event          []string `query:"event" maxItems:"50" doc:"Only of these kinds"`
	CallID         string   `query:"call_id" maxLength:"60" doc:"Only of this call"`
	ResponseStatus int      `query:"response_status" minimum:"100" maximum:"599" doc:"Only those whose last attempt was answered so"`
}

// Deliveries returns the finished and pending deliveries of a webhook.
func (s *Service) Deliveries(ctx context.Context, in *DeliveriesIn) (*op.Out[op.Page[Delivery]], error) {
	e, err := s.findEndpoint(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	since, until, err := in.Times()
	if err != nil {
		return nil, err
	}
	view, err := visibility.From(ctx, s.cfg.DB.Read(ctx))
	if err != nil {
		return nil, err
	}
	f := view.NarrowOptional(db.Where(`SELECT `+deliveryColumns+` FROM webhook_deliveries WHERE org_id = $1`, e.Org), "call_id").
		Equal("webhook_id", e.ID).In("kind", in.Event).Equal("call_id", in.CallID).Between("created_at", since, until)
	s.whereStatus(f, e.ID, in.Status)
	if in.ResponseStatus != 0 {
		f.And("response_status = ?", in.ResponseStatus)
	}
	total, err := in.Total(ctx, s.cfg.DB.Read(ctx), f)
	if err != nil {
		return nil, err
	}
	f.Page("created_at", true, db.At(time.UnixMicro(after.Int)), after.ID, in.Limit)
	text, args := f.SQL()
	rows, err := listDeliveries(ctx, s.cfg.DB.Read(ctx), text, args...)
	if err != nil {
		return nil, err
	}
	all := make([]Delivery, len(rows))
	for i, d := range rows {
		all[i] = s.withLiveStatus(d)
	}
	out := op.Paged(ctx, in.Paging, all, func(d Delivery) op.Position {
		return op.Position{Int: d.CreatedAt.UnixMicro(), ID: d.ID}
	})
	out.Body.Total = total
	return out, nil
}

// whereStatus adds the filter by state. The state delivering exists only in memory.
func (s *Service) whereStatus(f *db.Filter, webhook string, states []string) {
	var stored, now []string
	for _, st := range states {
		if st != delivering {
			stored = append(stored, st)
			continue
		}
		s.inFlight.Range(func(id, of any) bool {
			if of == webhook {
				now = append(now, id.(string))
			}
			return true
		})
		now = append(now, "none")
	}
	switch {
	case len(now) == 0:
		f.In("status", stored)
	case len(stored) == 0:
		f.In("id", now)
	default:
		f.And("status IN ("+sqlPlaceholders(stored)+") OR id IN ("+sqlPlaceholders(now)+")", toArgs(append(stored, now...))...)
	}
}

func sqlPlaceholders(all []string) string {
	return strings.TrimSuffix(strings.Repeat("?, ", len(all)), ", ")
}

func toArgs(all []string) []any {
	some := make([]any, len(all))
	for i, v := range all {
		some[i] = v
	}
	return some
}

// withLiveStatus returns the API form of a delivery, with the state delivering if this node is sending it.
func (s *Service) withLiveStatus(d *delivery) Delivery {
	r := d.toAPI()
	if _, now := s.inFlight.Load(d.ID); now && d.FinishedAt.IsZero() {
		r.Status = delivering
	}
	return r
}

// DeliveryIn identifies a delivery.
type DeliveryIn struct {
	GetIn
	DeliveryID string `path:"delivery_id" doc:"Delivery" example:"dlv_01JB2M"`
}

// Delivery returns one delivery with its attempts and exact body.
func (s *Service) Delivery(ctx context.Context, in *DeliveryIn) (*op.Out[Delivery], error) {
	d, err := s.findDelivery(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := checkReadable(ctx, d.Kind); err != nil {
		return nil, err
	}
	r, err := s.fullDelivery(ctx, d)
	if err != nil {
		return nil, err
	}
	return op.OK(r)
}

func (s *Service) fullDelivery(ctx context.Context, d *delivery) (Delivery, error) {
	r := s.withLiveStatus(d)
	r.Body = d.Body
	var err error
	r.Attempts, err = listAttempts(ctx, s.cfg.DB.Read(ctx), d.Org, d.ID)
	return r, err
}

func (s *Service) findDelivery(ctx context.Context, in *DeliveryIn) (*delivery, error) {
	if _, err := s.findEndpoint(ctx, in.ID); err != nil {
		return nil, err
	}
	d, err := getDelivery(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), in.DeliveryID)
	if db.IsNone(err) || err == nil && d.WebhookID != in.ID {
		return nil, op.NotFound("delivery")
	}
	if err != nil {
		return nil, fmt.Errorf("read delivery: %w", err)
	}
	return d, nil
}

// ReplayIn is the request of webhooks.deliveries.replay.
type ReplayIn struct {
	DeliveryIn
	Body *ReplayBody
}

// ReplayBody has no members.
type ReplayBody struct{}

// Replay sends an event again: the same webhook-id and the same bytes, in a new delivery.
func (s *Service) Replay(ctx context.Context, in *ReplayIn) (*op.Out[Delivery], error) {
	var d *delivery
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		old, err := s.findDelivery(ctx, &in.DeliveryIn)
		if err != nil {
			return err
		}
		if err := checkReadable(ctx, old.Kind); err != nil {
			return err
		}
		e, err := s.findEndpoint(ctx, in.ID)
		if err != nil {
			return err
		}
		if e.Status == Disabled {
			return op.State("the webhook is disabled; make it active first", string(e.Status), "update")
		}
		now := s.time()
		d = &delivery{Org: old.Org, ID: db.NewID("dlv"), WebhookID: e.ID, EventID: old.EventID, Kind: old.Kind, CallID: old.CallID,
			Sequence: old.Sequence, Body: old.Body, Status: pending, Held: e.Holding, ReplayOf: old.ID, CreatedAt: now}
		if e.Holding { // after the other held ones; event.LockOrder prevents that a release misses it
			if err := event.LockOrder(ctx, tx); err != nil {
				return err
			}
		} else {
			d.NextAt = now
		}
		return s.insertAndEnqueue(ctx, tx, d)
	})
	if err != nil {
		return nil, err
	}
	r, err := s.fullDelivery(ctx, d)
	return &op.Out[Delivery]{Location: op.Prefix + "/webhooks/" + d.WebhookID + "/deliveries/" + d.ID, Body: r}, err
}

// TestIn is the request of webhooks.test.
type TestIn struct {
	GetIn
	Body *TestBody
}

// TestBody selects the sample.
type TestBody struct {
	Event string `json:"event,omitempty" default:"call.ended" doc:"Kind of event" example:"call.ended"`
}

// Test sends a signed sample once and waits for the answer, in any state of the webhook. It does not change the
// webhook's health.
func (s *Service) Test(ctx context.Context, in *TestIn) (*op.Out[Delivery], error) {
	e, err := s.findEndpoint(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	kind := "call.ended"
	if in.Body != nil {
		kind = orDefault(in.Body.Event, kind)
	}
	sample, ok := sampleOf(kind)
	if !ok {
		return nil, op.Invalid(op.Field("event", "unknown_event", "there is no such event; GET /webhooks/events lists them"))
	}
	body, err := event.Encode(sample)
	if err != nil {
		return nil, err
	}
	d := &delivery{Org: e.Org, ID: db.NewID("dlv"), WebhookID: e.ID, EventID: db.NewID("evt"), Kind: string(sample.Kind()),
		Body: string(body), Status: pending, CreatedAt: s.time()}
	r, err := s.send(ctx, e, d)
	if err != nil {
		return nil, err
	}
	v := retryDecision{status: exhausted}
	if r.ok() {
		v.status = succeeded
	}
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := insertDeliveries(ctx, tx, []*delivery{d}); err != nil {
			return err
		}
		v.apply(d, r, false)
		if err := insertAttempts(ctx, tx, []outcome{{e, d, r, v}}); err != nil {
			return err
		}
		return updateDeliveries(ctx, tx, []*delivery{d})
	})
	if err != nil {
		return nil, err
	}
	answer, err := s.fullDelivery(ctx, d)
	return &op.Out[Delivery]{Body: answer}, err
}
