package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"soniq/db"
	"soniq/event"
	"soniq/job"
)

// Fan writes one delivery per event and endpoint that asked for it, with the job that sends it, in the transaction in
// which the events are numbered.
func (s *Service) Fan(ctx context.Context, tx db.Querier, batch []event.Event) error {
	orgs := map[string][]*endpoint{}
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
			d, err := s.tell(ctx, tx, e, ev)
			if err != nil {
				return err
			}
			if d != nil {
				all = append(all, d)
			}
		}
	}
	return s.begin(ctx, tx, all...)
}

// tell makes a delivery of an event that the endpoint is to be told of; otherwise nil.
func (s *Service) tell(ctx context.Context, tx db.Querier, e *endpoint, ev event.Event) (*delivery, error) {
	if e.Status == Disabled || !e.wants(ev) {
		return nil, nil
	}
	if ok, err := e.passes(ctx, tx, ev); err != nil || !ok {
		return nil, err
	}
	now := s.time()
	d := &delivery{Org: ev.OrgID, ID: db.NewID("dlv"), WebhookID: e.ID, EventID: ev.ID, Kind: string(ev.Kind), CallID: ev.CallID,
		Sequence: ev.Sequence, Body: s.bodyFor(e, ev), Status: pending, Held: e.Holding, CreatedAt: now}
	if !d.Held {
		d.NextAt = now
	}
	return d, nil
}

// begin writes new deliveries, and jobs for those that need not wait.
func (s *Service) begin(ctx context.Context, tx db.Querier, all ...*delivery) error {
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

// many is more attempts than are ever made: the delivery counts its own.
const many = 1 << 20

func (s *Service) enqueue(ctx context.Context, tx db.Querier, all ...*delivery) error {
	specs := make([]job.Spec, len(all))
	for i, d := range all {
		specs[i] = job.Spec{Org: d.Org, Queue: queueName, Lane: d.WebhookID, Kind: deliverKind, Args: deliverArgs{d.ID},
			MaxAttempts: many, UniqueKey: d.ID, OrderKey: d.orderKey()}
	}
	return s.Queue.Enqueue(ctx, tx, specs...)
}

// subject is what of an event filters look at.
type subject struct {
	Direction  string `json:"direction"`
	QueueID    string `json:"queue_id"`
	NumberID   string `json:"number_id"`
	UserID     string `json:"user_id"`
	AgentID    string `json:"agent_id"`
	AssignedTo struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"assigned_to"`
}

// passes applies the filters. An event of a call is looked at together with the earlier ones of that call, for not
// each of them names queue, number and user. An event that cannot have what a filter asks for, such as the direction
// of a new user, passes it.
func (e *endpoint) passes(ctx context.Context, tx db.Querier, ev event.Event) (bool, error) {
	if e.Filters.empty() {
		return true, nil
	}
	bodies := []string{ev.Body}
	if ev.CallID != "" {
		earlier, err := callBodies(ctx, tx, ev.OrgID, ev.CallID)
		if err != nil {
			return false, err
		}
		bodies = append(bodies, earlier...)
	}
	var all []subject
	for _, b := range bodies {
		var x struct{ Data subject }
		if err := json.Unmarshal([]byte(b), &x); err != nil {
			return false, fmt.Errorf("read event %s: %w", ev.ID, err)
		}
		all = append(all, x.Data)
	}
	return e.Filters.match(all, ev.CallID != ""), nil
}

func callBodies(ctx context.Context, tx db.Querier, org, call string) ([]string, error) {
	const q = `SELECT body FROM events WHERE org_id = $1 AND call_id = $2 AND audience <> 'stream'`
	rows, err := tx.Query(ctx, q, org, call)
	if err != nil {
		return nil, fmt.Errorf("read events of call: %w", err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var b string
		if err := rows.Scan(&b); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, rows.Err()
}

// match reports whether what is known of the subject satisfies every filter. strict: what is not known does not match.
func (f Filters) match(all []subject, strict bool) bool {
	one := func(allowed []string, of func(subject) []string) bool {
		known := false
		for _, x := range all {
			for _, v := range of(x) {
				known = known || v != ""
				if v != "" && slices.Contains(allowed, v) {
					return true
				}
			}
		}
		return len(allowed) == 0 || !known && !strict
	}
	var direction []string
	if f.Direction != "" {
		direction = []string{f.Direction}
	}
	return one(direction, func(x subject) []string { return []string{x.Direction} }) &&
		one(f.QueueIDs, func(x subject) []string { return []string{x.QueueID} }) &&
		one(f.NumberIDs, func(x subject) []string { return []string{x.NumberID} }) &&
		one(f.UserIDs, subject.users)
}

func (x subject) users() []string {
	users := []string{x.UserID, x.AgentID}
	if x.AssignedTo.Type == "user" {
		users = append(users, x.AssignedTo.ID)
	}
	return users
}

// bodyFor is what the endpoint gets: the event's own bytes, unless it asked for signed recording addresses.
func (s *Service) bodyFor(e *endpoint, ev event.Event) string {
	if !e.SignRecordings || s.SignRecording == nil {
		return ev.Body
	}
	var b []byte
	var err error
	switch ev.Kind {
	case event.CallEnded{}.Kind():
		b, err = resign(ev.Body, func(p *event.CallEnded) { p.RecordingURL = s.signed(ev.OrgID, p.RecordingURL) })
	case event.CallRecording{}.Kind():
		b, err = resign(ev.Body, func(p *event.CallRecording) { p.RecordingURL = s.signed(ev.OrgID, p.RecordingURL) })
	}
	if err != nil || b == nil {
		return ev.Body
	}
	return string(b)
}

func (s *Service) signed(org string, address *string) *string {
	if address == nil {
		return nil
	}
	with := s.SignRecording(org, *address)
	return &with
}

func resign[P event.Payload](body string, change func(*P)) ([]byte, error) {
	var x struct{ Data P }
	if err := json.Unmarshal([]byte(body), &x); err != nil {
		return nil, err
	}
	change(&x.Data)
	return event.Encode(x.Data)
}
