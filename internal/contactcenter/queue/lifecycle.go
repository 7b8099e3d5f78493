package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/observe"
)

// Lifecycle of entries and offers: enter, offer, connect, leave. Each step is a conditional update in the caller's
// transaction. If several nodes try the same step, only one succeeds.

// Caller is a call that enters a queue.
type Caller struct {
	Org, QueueID, CallID, From string
	Priority                   *int // nil: the queue's priority
	Skills                     map[string]int
	Contact                    *event.Contact
}

// Reasons why a caller cannot enter or stay.
var (
	ErrFull     = errors.New("the queue is full")
	ErrNoAgents = errors.New("the queue has no agents")
	ErrClosed   = errors.New("the queue is closed")
	// ErrGone means that the entry, the offer or every agent was taken by a concurrent transaction. Read again.
	ErrGone = errors.New("taken meanwhile")
)

// Enter adds a caller to a queue and publishes queue.call_waiting. With ErrFull, ErrNoAgents and ErrClosed the caller
// must be routed to the overflow. If the call has an open entry already, the error is a conflict (db.IsConflict).
func (s *Service) Enter(ctx context.Context, tx db.Querier, c Caller) (Entry, error) {
	k, err := get(ctx, tx, c.Org, c.QueueID)
	if err != nil {
		return Entry{}, fmt.Errorf("find queue: %w", err)
	}
	if err := s.checkAdmission(ctx, tx, k); err != nil {
		return Entry{}, err
	}
	now := db.At(s.cfg.Clock.Now())
	e := Entry{OrgID: c.Org, Skills: c.Skills, orderKey: now.UnixMicro(), QueueEntry: event.QueueEntry{ID: db.NewID("qen"), QueueID: k.ID,
		CallID: c.CallID, Status: Waiting, Priority: k.Priority, FromNumber: c.From, Contact: c.Contact, EnteredAt: now}}
	if c.Priority != nil {
		e.Priority = *c.Priority
	}
	return s.enter(ctx, tx, k, e)
}

// checkAdmission returns ErrClosed, ErrFull or ErrNoAgents if a caller may not enter now.
func (s *Service) checkAdmission(ctx context.Context, q db.Querier, k Queue) error {
	if k.Hours != nil {
		zone, err := s.cfg.Orgs.Zone(ctx, k.OrgID)
		if err != nil {
			return err
		}
		if open, _ := k.Hours.At(s.cfg.Clock.Now(), zone); !open {
			return ErrClosed
		}
	}
	if k.MaxCallers > 0 {
		if err := s.lockQueue(ctx, q, k); err != nil {
			return err
		}
		const text = `SELECT COUNT(*) FROM queue_entries WHERE org_id = $1 AND queue_id = $2 AND ` + waitingCondition
		var standing int
		if err := q.QueryRow(ctx, text, k.OrgID, k.ID).Scan(&standing); err != nil {
			return fmt.Errorf("count callers: %w", err)
		}
		if standing >= k.MaxCallers {
			return ErrFull
		}
	}
	if k.JoinWhenNoAgents {
		return nil
	}
	staffed, err := s.staffed(ctx, q, k)
	if err == nil && staffed == 0 {
		return ErrNoAgents
	}
	return err
}

// lockQueue locks the row of a queue until the transaction ends, so that callers who enter at the same moment are counted
// one after the other. SQLite has one writer.
func (s *Service) lockQueue(ctx context.Context, q db.Querier, k Queue) error {
	if s.cfg.DB.ForUpdate() == "" {
		return nil
	}
	const text = `SELECT id FROM queues WHERE org_id = $1 AND id = $2 FOR NO KEY UPDATE` // inserts that refer to the queue do not wait
	var id string
	if err := q.QueryRow(ctx, text, k.OrgID, k.ID).Scan(&id); err != nil {
		return fmt.Errorf("lock queue: %w", err)
	}
	return nil
}

// enter inserts an entry and publishes queue.call_waiting.
func (s *Service) enter(ctx context.Context, tx db.Querier, k Queue, e Entry) (Entry, error) {
	if e.Node == "" {
		e.Node = s.cfg.Node
	}
	if err := insertEntry(ctx, tx, e); err != nil {
		return e, fmt.Errorf("enter queue: %w", err)
	}
	if err := observe.Each(s.observers.enter, func(o EnterObserver) error {
		return o.QueueEntered(ctx, tx, e.OrgID, e.CallID,
			k.ID)
	}); err != nil {
		return e, err
	}
	now, err := s.currentStats(ctx, tx, k)
	if err != nil {
		return e, err
	}
	p, err := s.throughputAt(ctx, tx, k, now)
	if err != nil {
		return e, err
	}
	at, err := position(ctx, tx, e)
	if err != nil {
		return e, err
	}
	e.setPosition(at, p, db.At(s.cfg.Clock.Now()))
	s.notifyChange(tx, e.OrgID, k.ID)
	return e, s.cfg.Outbox.Publish(ctx, tx, e.OrgID, event.QueueCallWaiting{QueueID: k.ID, QueueName: k.Name, CallID: e.CallID,
		FromNumber: e.FromNumber, Position: e.Position, CallersWaiting: now.CallersWaiting, AgentsAvailable: now.AgentsAvailable,
		EstimatedWaitSeconds: e.EstimatedWait, EnteredAt: e.EnteredAt, Contact: e.Contact})
}

// moveToQueue moves a waiting entry to another queue. Its order key stays, so that the time already waited counts.
func (s *Service) moveToQueue(ctx context.Context, tx db.Querier, e Entry, to Queue) (Entry, error) {
	if err := s.leave(ctx, tx, e.OrgID, e.ID, Exited, "moved"); err != nil {
		return e, err
	}
	next := e
	next.ID, next.QueueID, next.EnteredAt, next.Offers, next.OfferedAgentID = db.NewID("qen"), to.ID, db.At(s.cfg.Clock.Now()), 0, nil
	if next.Callback != nil {
		if err := s.reportCallback(ctx, tx, next, CallbackChange{Status: next.Callback.Status,
			At: next.Callback.ScheduledAt.Time}); err != nil {
			return e, err
		}
	}
	return s.enter(ctx, tx, to, next)
}

// NextEntry returns the first waiting entry of a queue, locked if the database supports it. It returns db.ErrNone if
// none waits.
func (s *Service) NextEntry(ctx context.Context, tx db.Querier, org, queue string) (Entry, error) {
	text := entryColumns + ` AND queue_id = $2 AND ` + waitingCondition +
		` AND status IN ('waiting', 'callback_pending') ORDER BY priority DESC, place, id LIMIT 1`
	return scanEntry(tx.QueryRow(ctx, text+s.cfg.DB.SkipLocked(), org, queue).Scan)
}

// States of an offer.
const (
	OfferOpen      = "offering"
	OfferConnected = "connected"
	OfferCompleted = "completed"
	OfferNoAnswer  = "no_answer"
	OfferRejected  = "rejected"
	OfferCanceled  = "canceled" // another agent answered, or the caller left
	OfferFailed    = "failed"   // no phone could be rung
	OfferExpired   = "expired"  // the lease ended without a recorded result
)

// Offer is one agent being rung for a caller.
type Offer struct {
	Org, ID, QueueID, EntryID, CallID, AgentID, Status string
	OfferedAt, LeaseUntil                              db.Time
}

// offerLeaseMargin is added to the ring time of an offer for its lease.
const offerLeaseMargin = 5 * time.Second

// Offer makes offers of a waiting caller to those agents that have no other offer or conversation. It returns ErrGone
// if the caller does not wait any more or no agent is free. In that case roll back the transaction, so that nothing
// is written. An entry that has offers already gets these in addition.
func (s *Service) Offer(ctx context.Context, e Entry, agents []string, ring time.Duration) (made []Offer, err error) {
	err = s.cfg.DB.TxRelaxedContext(ctx, func(ctx context.Context, tx db.Querier) error {
		made, err = s.offer(ctx, tx, e, agents, ring)
		return err
	})
	return made, err
}

func (s *Service) offer(ctx context.Context, tx db.Querier, e Entry, agents []string, ring time.Duration) ([]Offer, error) {
	const take = `UPDATE queue_entries SET status = CASE WHEN status = 'callback_pending' THEN 'callback_dialing' ELSE 'offering' END,
			offers = offers + 1, agent_id = COALESCE(agent_id, $3), node = $4
		WHERE org_id = $1 AND id = $2 AND status = $5 AND status IN ('waiting', 'offering', 'callback_pending')`
	if ok, err := affected(tx.Exec(ctx, take, e.OrgID, e.ID, agents[0], s.cfg.Node, e.Status)); err != nil || !ok {
		return nil, orErrGone(err)
	}
	made, err := s.insertOffers(ctx, tx, e, agents, ring)
	if err == nil && len(made) == 0 {
		err = ErrGone
	}
	if err != nil {
		return nil, err
	}
	return made, s.recordOffers(ctx, tx, e, agents[0], made)
}

// insertOffers inserts offers for the free agents.
func (s *Service) insertOffers(ctx context.Context, tx db.Querier, e Entry, agents []string, ring time.Duration) (made []Offer, err error) {
	const text = `INSERT INTO queue_offers (org_id, id, queue_id, entry_id, call_id, agent_id, status, node, offered_at, lease_until,
		ring_seconds)
		VALUES ($1, $2, $3, $4, $5, $6, 'offering', $7, $8, $9, 0)`
	now := s.cfg.Clock.Now()
	for _, id := range agents {
		o := Offer{Org: e.OrgID, ID: db.NewID("qof"), QueueID: e.QueueID, EntryID: e.ID, CallID: e.CallID, AgentID: id, Status: OfferOpen,
			OfferedAt: db.At(now), LeaseUntil: db.At(now.Add(ring + offerLeaseMargin))}
		ring := func(tx db.Querier) error {
			_, err := tx.Exec(ctx, text, o.Org, o.ID, o.QueueID, o.EntryID, o.CallID, o.AgentID, s.cfg.Node, o.OfferedAt, o.LeaseUntil)
			return err
		}
		var err error
		if len(agents) == 1 { // a taken agent ends the transaction
			err = ring(tx)
		} else { // in a savepoint, so that a taken agent does not prevent offers to the others
			err = s.cfg.DB.Tx(ctx, ring)
		}
		if db.IsConflict(err) {
			if len(agents) == 1 {
				return nil, ErrGone
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("offer caller to %s: %w", id, err)
		}
		made = append(made, o)
	}
	return made, nil
}

// recordOffers stores which agents are rung and publishes their presence. The entry already names the first agent who
// was to be rung.
func (s *Service) recordOffers(ctx context.Context, tx db.Querier, e Entry, first string, made []Offer) error {
	if e.Status != Offering && made[0].AgentID != first {
		const text = `UPDATE queue_entries SET agent_id = $3 WHERE org_id = $1 AND id = $2`
		if _, err := tx.Exec(ctx, text, e.OrgID, e.ID, made[0].AgentID); err != nil {
			return err
		}
	}
	users := make([]string, len(made))
	const last = `UPDATE queue_members SET last_offered_at = $4 WHERE org_id = $1 AND queue_id = $2 AND user_id = $3`
	for i, o := range made {
		users[i] = o.AgentID
		if _, err := tx.Exec(ctx, last, o.Org, o.QueueID, o.AgentID, o.OfferedAt); err != nil {
			return err
		}
	}
	s.notifyChange(tx, e.OrgID, e.QueueID)
	return s.cfg.Agents.PublishPresence(ctx, tx, e.OrgID, users)
}

const offerColumns = `SELECT org_id, id, queue_id, entry_id, call_id, agent_id, status, offered_at, lease_until FROM queue_offers WHERE org_id = $1`

func scanOffer(scan func(...any) error) (o Offer, err error) {
	err = scan(&o.Org, &o.ID, &o.QueueID, &o.EntryID, &o.CallID, &o.AgentID, &o.Status, &o.OfferedAt, &o.LeaseUntil)
	return o, err
}

func getOffer(ctx context.Context, q db.Querier, org, id string) (Offer, error) {
	return scanOffer(q.QueryRow(ctx, offerColumns+` AND id = $2`, org, id).Scan)
}

// offersOf returns the offers of an entry in one state.
func offersOf(ctx context.Context, q db.Querier, org, entry, status string) (found []Offer, err error) {
	const text = offerColumns + ` AND entry_id = $2 AND status = $3 ORDER BY id`
	err = db.ForEach(ctx, q, "find offers", text, []any{org, entry, status}, func(scan func(...any) error) error {
		o, err := scanOffer(scan)
		found = append(found, o)
		return err
	})
	return found, err
}

// closeOffer changes an offer from one state to another. It reports whether the offer was in the first state.
func (s *Service) closeOffer(ctx context.Context, tx db.Querier, o Offer, from, to string) (bool, error) {
	const text = `UPDATE queue_offers SET status = $4, ended_at = $5, ring_seconds = $6 WHERE org_id = $1 AND id = $2 AND status = $3`
	now, ended := s.cfg.Clock.Now(), db.Time{}
	if to != OfferConnected {
		ended = db.At(now)
	}
	ring := int(now.Sub(o.OfferedAt.Time).Round(time.Second) / time.Second)
	if from == OfferConnected { // the ring time was stored before
		const end = `UPDATE queue_offers SET status = $4, ended_at = $5 WHERE org_id = $1 AND id = $2 AND status = $3`
		return affected(tx.Exec(ctx, end, o.Org, o.ID, from, to, ended))
	}
	return affected(tx.Exec(ctx, text, o.Org, o.ID, from, to, ended, ring))
}
