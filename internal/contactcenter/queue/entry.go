package queue

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// States of an entry (api-surface 7.5).
const (
	Waiting         = "waiting"
	Offering        = "offering"
	Connected       = "connected"
	Completed       = "completed"
	Abandoned       = "abandoned"
	TimedOut        = "timed_out"
	Overflowed      = "overflowed"
	Exited          = "exited"
	Removed         = "removed"
	CallbackPending = "callback_pending"
	CallbackDialing = "callback_dialing"
	CallbackFailed  = "callback_failed"
)

// Entry is one wait of a caller in a queue.
type Entry struct {
	event.QueueEntry

	OrgID       string         `json:"-"`
	Skills      map[string]int `json:"-"` // that the caller needs, in addition to the queue's
	ConnectedAt db.Time        `json:"-"`
	RetryAt     db.Time        `json:"-"` // not offered before this time
	Node        string         `json:"-"` // the node that runs the call
	LeaseUntil  db.Time        `json:"-"` // the node must renew the lease before this time
	orderKey    int64
}

// waitingCondition selects entries that have a position in the queue. Statements repeat the condition of the partial
// index word for word, because SQLite uses the index only then.
const (
	waitingCondition = `status IN ('waiting', 'offering', 'callback_pending', 'callback_dialing')`
	openCondition    = `status IN ('waiting', 'offering', 'callback_pending', 'callback_dialing', 'connected')`
)

const entryColumns = `SELECT org_id, id, queue_id, call_id, status, priority, place, from_number, contact, skills, entered_at, offers,
	agent_id, connected_at, callback, exited_at, exit_reason, retry_at, node, lease_until FROM queue_entries WHERE org_id = $1`

func scanEntry(scan func(...any) error) (Entry, error) {
	var e Entry
	var contact db.JSON[*event.Contact]
	var skills db.JSON[map[string]int]
	var callback db.JSON[*event.QueueCallback]
	err := scan(&e.OrgID, &e.ID, &e.QueueID, &e.CallID, &e.Status, &e.Priority, &e.orderKey, &e.FromNumber, &contact, &skills, &e.EnteredAt,
		&e.Offers, &e.OfferedAgentID, &e.ConnectedAt, &callback, &e.ExitedAt, &e.ExitReason,
		&e.RetryAt, &e.Node, &e.LeaseUntil)
	e.Contact, e.Skills, e.Callback = contact.V, skills.V, callback.V
	return e, err
}

func insertEntry(ctx context.Context, tx db.Querier, e Entry) error {
	const text = `INSERT INTO queue_entries (org_id, id, queue_id, call_id, status, priority, place, from_number, contact, skills,
			entered_at, offers, callback, node, lease_until, retry_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`
	var contact, callback any
	if e.Contact != nil {
		contact = db.AsJSON(e.Contact)
	}
	if e.Callback != nil {
		callback = db.AsJSON(e.Callback)
	}
	if e.Skills == nil {
		e.Skills = map[string]int{}
	}
	_, err := tx.Exec(ctx, text, e.OrgID, e.ID, e.QueueID, e.CallID, e.Status, e.Priority, e.orderKey, e.FromNumber, contact,
		db.AsJSON(e.Skills), e.EnteredAt, e.Offers, callback, e.Node, db.At(e.EnteredAt.Add(entryLease)), e.RetryAt)
	return err
}

// getEntry returns an entry by its id, or db.ErrNone.
func getEntry(ctx context.Context, q db.Querier, org, id string) (Entry, error) {
	return scanEntry(q.QueryRow(ctx, entryColumns+` AND id = $2`, org, id).Scan)
}

// openEntry returns the open entry of a call in a queue, or db.ErrNone.
func openEntry(ctx context.Context, q db.Querier, org, queue, call string) (Entry, error) {
	return scanEntry(q.QueryRow(ctx, entryColumns+` AND call_id = $2 AND queue_id = $3 AND `+openCondition, org, call, queue).Scan)
}

// Entry returns an entry by its id, or db.ErrNone.
func (s *Service) Entry(ctx context.Context, q db.Querier, org, id string) (Entry, error) {
	return getEntry(ctx, q, org, id)
}

// EntryWithPosition returns an entry with its position and its estimated wait.
func (s *Service) EntryWithPosition(ctx context.Context, q db.Querier, org, id string) (Entry, error) {
	e, err := getEntry(ctx, q, org, id)
	if err != nil {
		return e, err
	}
	k, err := get(ctx, q, org, e.QueueID)
	if err != nil {
		return e, err
	}
	one := []Entry{e}
	err = s.addPositions(ctx, q, k, one)
	return one[0], err
}

// IsOfferOpen reports whether the agent of an offer is still being rung, or has answered.
func (s *Service) IsOfferOpen(ctx context.Context, q db.Querier, org, id string) (bool, error) {
	o, err := getOffer(ctx, q, org, id)
	return o.Status == OfferOpen || o.Status == OfferConnected, err
}

// EntryOfCall returns the open entry of a call, or db.ErrNone.
func (s *Service) EntryOfCall(ctx context.Context, q db.Querier, org, call string) (Entry, error) {
	return scanEntry(q.QueryRow(ctx, entryColumns+` AND call_id = $2 AND `+openCondition, org, call).Scan)
}

func entries(ctx context.Context, q db.Querier, doing, text string, args []any) (found []Entry, err error) {
	err = db.ForEach(ctx, q, doing, text, args, func(scan func(...any) error) error {
		e, err := scanEntry(scan)
		found = append(found, e)
		return err
	})
	return found, err
}

// waitingEntries returns all entries with a position in a queue, in order.
func waitingEntries(ctx context.Context, q db.Querier, org, queue string) ([]Entry, error) {
	const text = entryColumns + ` AND queue_id = $2 AND ` + waitingCondition + ` ORDER BY priority DESC, place, id`
	found, err := entries(ctx, q, "read line", text, []any{org, queue})
	for i := range found {
		found[i].Position = i + 1
	}
	return found, err
}

// openCalls returns the calls that wait in a queue or talk with its agents, at most 100.
func openCalls(ctx context.Context, q db.Querier, org, queue string) (calls []string, err error) {
	const text = `SELECT call_id FROM queue_entries WHERE org_id = $1 AND queue_id = $2 AND ` + openCondition + ` ORDER BY id LIMIT 100`
	err = db.ForEach(ctx, q, "find callers", text, []any{org, queue}, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		calls = append(calls, id)
		return err
	})
	return calls, err
}

// addPositions sets the position, the waiting time and the estimated wait of entries.
func (s *Service) addPositions(ctx context.Context, q db.Querier, k Queue, found []Entry) error {
	p, err := s.currentThroughput(ctx, q, k)
	if err != nil {
		return err
	}
	at, err := positions(ctx, q, k, found)
	if err != nil {
		return err
	}
	for i := range found {
		found[i].setPosition(at[found[i].ID], p, db.At(s.cfg.Clock.Now()))
	}
	return nil
}

// setPosition sets the fields that depend on the current time and position.
func (e *Entry) setPosition(position int, p throughput, now db.Time) {
	e.WaitedSeconds = e.waitedSeconds(now)
	if e.Position = position; position > 0 {
		e.EstimatedWait = p.estimatedWait(position)
	}
}

// positions returns the positions of entries in their queue, by entry id. Entries that do not wait have none.
func positions(ctx context.Context, q db.Querier, k Queue, found []Entry) (map[string]int, error) {
	at := map[string]int{}
	if len(found) == 1 {
		n, err := position(ctx, q, found[0])
		at[found[0].ID] = n
		return at, err
	}
	const text = `SELECT id FROM queue_entries WHERE org_id = $1 AND queue_id = $2 AND ` + waitingCondition +
		` ORDER BY priority DESC, place, id`
	err := db.ForEach(ctx, q, "read line", text, []any{k.OrgID, k.ID}, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		at[id] = len(at) + 1
		return err
	})
	return at, err
}

// position returns the position of an entry in its queue; 0 if it does not wait.
func position(ctx context.Context, q db.Querier, e Entry) (n int, err error) {
	switch e.Status {
	case Waiting, Offering, CallbackPending, CallbackDialing:
	default:
		return 0, nil
	}
	const text = `SELECT COUNT(*) FROM queue_entries WHERE org_id = $1 AND queue_id = $2 AND ` + waitingCondition + `
		AND (priority > $3 OR priority = $3 AND (place < $4 OR place = $4 AND id <= $5))`
	if err := q.QueryRow(ctx, text, e.OrgID, e.QueueID, e.Priority, e.orderKey, e.ID).Scan(&n); err != nil {
		return 0, fmt.Errorf("find place in line: %w", err)
	}
	return n, nil
}

// waitedSeconds returns how long the caller has waited, or had waited when an agent answered or the caller left.
func (e Entry) waitedSeconds(now db.Time) int {
	until := now
	switch {
	case !e.ConnectedAt.IsZero():
		until = e.ConnectedAt
	case !e.ExitedAt.IsZero():
		until = e.ExitedAt
	}
	return max(int(until.Sub(e.EnteredAt.Time).Seconds()), 0)
}
