package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/visibility"
)

// eventSubject holds the fields of an event that filters use.
type eventSubject struct {
	Direction  string       `json:"direction"`
	QueueID    string       `json:"queue_id"`
	NumberID   string       `json:"number_id"`
	UserID     string       `json:"user_id"`
	AgentID    string       `json:"agent_id"`
	FromNumber string       `json:"from_number"`
	ToNumber   string       `json:"to_number"`
	Mailbox    subjectOwner `json:"mailbox"`
	AssignedTo subjectOwner `json:"assigned_to"`
}

// subjectOwner is the owner of a mailbox, or the target of a number.
type subjectOwner struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// callSubjectCache holds the subjects of calls, by organisation and call, and what the makers of webhooks see, by organisation and
// user, for one batch.
type callSubjectCache struct {
	subjects map[[2]string][]eventSubject
	views    map[[2]string]visibility.View
}

func newCallSubjectCache() callSubjectCache {
	return callSubjectCache{map[[2]string][]eventSubject{}, map[[2]string]visibility.View{}}
}

// view returns what the maker of an endpoint sees.
func (k callSubjectCache) view(ctx context.Context, q db.Querier, e *endpoint) (visibility.View, error) {
	key := [2]string{e.Org, e.User}
	if v, seen := k.views[key]; seen {
		return v, nil
	}
	v, err := visibility.Of(ctx, q, e.Org, e.User)
	if err == nil {
		k.views[key] = v
	}
	return v, err
}

// sees reports whether the maker of an endpoint sees the call of an event.
func (k callSubjectCache) sees(ctx context.Context, q db.Querier, e *endpoint, callID string) (bool, error) {
	if e.User == "" || callID == "" {
		return true, nil
	}
	v, err := k.view(ctx, q, e)
	if err != nil {
		return false, err
	}
	return v.Sees(ctx, q, callID)
}

// subjectsFor returns the subjects of an event. For an event of a call these include the call's other events, because
// not every event contains the queue, number and user.
func (s *Service) subjectsFor(ctx context.Context, tx db.Querier, known callSubjectCache, ev event.Event) ([]eventSubject, error) {
	own, err := s.subjectOf(ctx, tx, ev)
	if err != nil || ev.CallID == "" {
		return []eventSubject{own}, err
	}
	key := [2]string{ev.OrgID, ev.CallID}
	if _, seen := known.subjects[key]; !seen {
		if known.subjects[key], err = callSubjects(ctx, tx, ev.OrgID, ev.CallID); err != nil {
			return nil, err
		}
	}
	return append([]eventSubject{own}, known.subjects[key]...), nil
}

// subjectOf returns the subject of an event. For a message it adds the direction and the id of our number.
func (s *Service) subjectOf(ctx context.Context, tx db.Querier, ev event.Event) (eventSubject, error) {
	x, err := readSubject(ev.Body)
	if err != nil {
		return x, fmt.Errorf("event %s: %w", ev.ID, err)
	}
	number := ""
	switch ev.Kind {
	case event.SMSReceived{}.Kind():
		x.Direction, number = "inbound", x.ToNumber
	case event.SMSSent{}.Kind():
		x.Direction, number = "outbound", x.FromNumber
	}
	if number == "" {
		return x, nil
	}
	id, err := s.cfg.Numbers.NumberID(ctx, tx, ev.OrgID, number)
	x.NumberID = cmp.Or(id, number) // a deleted number must not match a filter for another
	return x, err
}

func readSubject(body string) (eventSubject, error) {
	var x struct{ Data eventSubject }
	if err := json.Unmarshal([]byte(body), &x); err != nil {
		return x.Data, fmt.Errorf("read subject of event: %w", err)
	}
	return x.Data, nil
}

// callSubjects reads the subjects of a call's events: those for webhooks, and call.ringing, which names the users
// whose phones rang.
func callSubjects(ctx context.Context, tx db.Querier, org, call string) ([]eventSubject, error) {
	const q = `SELECT body FROM events WHERE org_id = $1 AND call_id = $2 AND (audience <> 'stream' OR kind = 'call.ringing')`
	rows, err := tx.Query(ctx, q, org, call)
	if err != nil {
		return nil, fmt.Errorf("read events of call: %w", err)
	}
	defer rows.Close()
	var all []eventSubject
	for rows.Next() {
		var body string
		if err := rows.Scan(&body); err != nil {
			return nil, err
		}
		x, err := readSubject(body)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, rows.Err()
}

// match reports whether the subjects satisfy every filter. If strict is true, a missing value does not match.
// Otherwise an event that cannot have the value, such as the direction of a new user, passes.
func (f Filters) match(all []eventSubject, strict bool) bool {
	one := func(allowed []string, of func(eventSubject) []string) bool {
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
	return one(direction, func(x eventSubject) []string { return []string{x.Direction} }) &&
		one(f.QueueIDs, eventSubject.queues) &&
		one(f.NumberIDs, func(x eventSubject) []string { return []string{x.NumberID} }) &&
		one(f.UserIDs, eventSubject.users)
}

func (x eventSubject) users() []string {
	return []string{x.UserID, x.AgentID, x.Mailbox.idOf("user"), x.AssignedTo.idOf("user")}
}

func (x eventSubject) queues() []string {
	return []string{x.QueueID, x.Mailbox.idOf("queue"), x.AssignedTo.idOf("queue")}
}

// idOf returns the id of an owner of the kind; "" if it is of another.
func (o subjectOwner) idOf(kind string) string {
	if o.Type == kind {
		return o.ID
	}
	return ""
}

// catchUpDeliveries returns deliveries of the earlier events of a call that matches the filters only now, or that the endpoint's maker
// sees only now. making are the deliveries of this batch so far.
func (s *Service) catchUpDeliveries(ctx context.Context, tx db.Querier, known callSubjectCache, e *endpoint, ev event.Event,
	making []*delivery) ([]*delivery, error) {
	v, err := known.view(ctx, tx, e)
	if err != nil || ev.CallID == "" || e.Filters.empty() && v.Everything() {
		return nil, err
	}
	held, err := s.cfg.Rights.StillHeld(ctx, e.Holder)
	if err != nil {
		return nil, fmt.Errorf("find the rights of a webhook: %w", err)
	}
	const q = `SELECT id, sequence, kind, audience, body, occurred_at FROM events
		WHERE org_id = $1 AND call_id = $2 AND sequence < $3 AND audience <> 'stream' AND occurred_at >= $4
			AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.org_id = events.org_id AND d.event_id = events.id
			AND d.webhook_id = $5)
		ORDER BY sequence`
	rows, err := tx.Query(ctx, q, e.Org, ev.CallID, ev.Sequence, e.UpdatedAt, e.ID)
	if err != nil {
		return nil, fmt.Errorf("read earlier events of call: %w", err)
	}
	defer rows.Close()
	var all []*delivery
	for rows.Next() {
		x := event.Event{OrgID: e.Org, CallID: ev.CallID}
		if err := rows.Scan(&x.ID, &x.Sequence, &x.Kind, &x.Audience, &x.Body, &x.OccurredAt); err != nil {
			return nil, err
		}
		made := slices.ContainsFunc(making, func(d *delivery) bool { return d.EventID == x.ID && d.WebhookID == e.ID })
		if !made && e.wants(x) && x.Kind.Need().MetBy(held) {
			all = append(all, s.buildDelivery(e, x))
		}
	}
	return all, rows.Err()
}
