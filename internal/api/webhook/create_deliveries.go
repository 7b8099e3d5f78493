package webhook

import (
	"context"
	"encoding/json"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
)

// CreateDeliveries writes one delivery per event and subscribed endpoint, with its job, in the transaction in which
// the events are numbered.
func (s *Service) CreateDeliveries(ctx context.Context, tx db.Querier, batch []event.Event) error {
	orgs, known := map[string][]*endpoint{}, newCallSubjectCache()
	var all []*delivery
	for _, ev := range batch {
		endpoints, seen := orgs[ev.OrgID]
		if !seen {
			var err error
			if endpoints, err = s.endpoints(ctx, tx, ev.OrgID); err != nil {
				return err
			}
			orgs[ev.OrgID] = endpoints
		}
		for _, e := range endpoints {
			d, err := s.newDelivery(ctx, tx, known, e, ev)
			if err != nil {
				return err
			}
			if d == nil {
				continue
			}
			before, err := s.catchUpDeliveries(ctx, tx, known, e, ev, all)
			if err != nil {
				return err
			}
			all = append(append(all, before...), d)
		}
	}
	return s.insertAndEnqueue(ctx, tx, all...)
}

// newDelivery returns a delivery of an event, or nil if the endpoint is disabled, not subscribed, or filters it out.
func (s *Service) newDelivery(ctx context.Context, tx db.Querier, known callSubjectCache, e *endpoint, ev event.Event) (*delivery, error) {
	if e.Status == Disabled || !e.wants(ev) {
		return nil, nil
	}
	if ok, err := s.mayReceive(ctx, e, ev.Kind); err != nil || !ok {
		return nil, err
	}
	if sees, err := known.sees(ctx, tx, e, ev.CallID); err != nil || !sees {
		return nil, err
	}
	if !e.Filters.empty() {
		about, err := s.subjectsFor(ctx, tx, known, ev)
		if err != nil || !e.Filters.match(about, ev.CallID != "") {
			return nil, err
		}
	}
	return s.buildDelivery(e, ev), nil
}

// buildDelivery returns a new delivery of an event. It is held if the endpoint's deliveries are held.
func (s *Service) buildDelivery(e *endpoint, ev event.Event) *delivery {
	now := s.time()
	d := &delivery{Org: ev.OrgID, ID: db.NewID("dlv"), WebhookID: e.ID, EventID: ev.ID, Kind: string(ev.Kind), CallID: ev.CallID,
		Sequence: ev.Sequence, Body: s.bodyFor(e, ev), Status: pending, Held: e.Holding, CreatedAt: now}
	if !d.Held {
		d.NextAt = now
	}
	return d
}

// insertAndEnqueue writes new deliveries, and jobs for those that are not held.
func (s *Service) insertAndEnqueue(ctx context.Context, tx db.Querier, all ...*delivery) error {
	if err := insertDeliveries(ctx, tx, all); err != nil {
		return err
	}
	var now []*delivery
	for _, d := range all {
		if !d.Held {
			now = append(now, d)
		}
	}
	return s.enqueue(ctx, tx, now...)
}

// deliverArgs are the arguments of a delivery's job.
type deliverArgs struct {
	ID string `json:"id"`
}

// unlimitedAttempts is larger than any real number of attempts, because the delivery counts its own.
const unlimitedAttempts = 1 << 20

func (s *Service) enqueue(ctx context.Context, tx db.Querier, all ...*delivery) error {
	specs := make([]job.Spec, len(all))
	for i, d := range all {
		specs[i] = job.Spec{Org: d.Org, Queue: queueName, Lane: d.WebhookID, Kind: deliverKind, Args: deliverArgs{d.ID},
			MaxAttempts: unlimitedAttempts, UniqueKey: d.ID, OrderKey: d.orderKey()}
	}
	return s.cfg.Queue.Enqueue(ctx, tx, specs...)
}

// bodyFor returns the body for an endpoint: the event's own bytes, unless the endpoint asked for signed recording
// addresses.
func (s *Service) bodyFor(e *endpoint, ev event.Event) string {
	if !e.SignRecordingURLs {
		return ev.Body
	}
	maker := e.Holder
	maker.OrgID = ev.OrgID // not recorded for an endpoint from before holders
	var b []byte
	var err error
	switch ev.Kind {
	case event.CallEnded{}.Kind():
		b, err = rewriteBody(ev.Body, func(p *event.CallEnded) { p.RecordingURL = s.signedURL(maker, p.RecordingURL) })
	case event.CallRecording{}.Kind():
		b, err = rewriteBody(ev.Body, func(p *event.CallRecording) { p.RecordingURL = s.signedURL(maker, p.RecordingURL) })
	case event.VoicemailReceived{}.Kind():
		b, err = rewriteBody(ev.Body, func(p *event.VoicemailReceived) { p.AudioURL = s.cfg.Recordings.SignedURL(maker, p.AudioURL) })
	}
	if err != nil || b == nil {
		return ev.Body
	}
	return string(b)
}

func (s *Service) signedURL(maker access.Holder, address *string) *string {
	if address == nil {
		return nil
	}
	with := s.cfg.Recordings.SignedURL(maker, *address)
	return &with
}

func rewriteBody[P event.Payload](body string, change func(*P)) ([]byte, error) {
	var x struct{ Data P }
	if err := json.Unmarshal([]byte(body), &x); err != nil {
		return nil, err
	}
	change(&x.Data)
	return event.Encode(x.Data)
}
