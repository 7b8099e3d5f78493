package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// How a callback stands. It waits for an agent in the place of the caller, is dialled, and dialled again where nobody was reached.
const (
	AwaitsAgent       = "waiting_agent"
	CallbackDials     = "dialing"
	CallbackRetries   = "retry_wait"
	CallbackCompleted = "completed"
	CallbackHasFailed = "failed"
	CallbackCanceled  = "canceled"
)

// A CallbackChange is what has become of a callback. Origin is the call whose caller awaits it.
type CallbackChange struct {
	Org, QueueID, Origin string
	Status               string
	To, From             string // whom to dial, and the number to show; given when it is accepted
	MaxAttempts          int    // likewise
	DialID               string // the call that is placed, with CallbackDials
	Result               string // of the attempt that is over; "" where none is
	Took                 bool   // that attempt counts: an agent was there
	At                   time.Time
}

// A Wanted is what a caller wants who is to be called back.
type Wanted struct{ To, From string }

// AwaitCallback lets a caller hang up and keep the place; the callback is dialled when an agent is free.
func (s *Service) AwaitCallback(ctx context.Context, tx db.Querier, org, entry string, w Wanted) error {
	const text = `UPDATE queue_entries SET status = 'callback_pending', callback = $3, agent_id = NULL
		WHERE org_id = $1 AND id = $2 AND status IN ('waiting', 'offering')`
	c := event.QueueCallback{Status: AwaitsAgent, ScheduledAt: db.At(s.Now())}
	if ok, err := affected(tx.Exec(ctx, text, org, entry, db.AsJSON(c))); err != nil || !ok {
		return orGone(err)
	}
	if err := s.letGo(ctx, tx, org, entry); err != nil {
		return err
	}
	e, err := getEntry(ctx, tx, org, entry)
	if err != nil {
		return fmt.Errorf("read caller: %w", err)
	}
	s.wake(tx, org, e.QueueID)
	return s.accepted(ctx, tx, e, w)
}

// EnterCallback lets a caller be called back who never waited: they are last in line.
func (s *Service) EnterCallback(ctx context.Context, tx db.Querier, c Caller, w Wanted) (Entry, error) {
	e, err := s.Enter(ctx, tx, c)
	if err != nil {
		return e, err
	}
	if err := s.AwaitCallback(ctx, tx, c.Org, e.ID, w); err != nil {
		return e, err
	}
	return getEntry(ctx, tx, c.Org, e.ID)
}

func (s *Service) accepted(ctx context.Context, tx db.Querier, e Entry, w Wanted) error {
	k, err := get(ctx, tx, e.OrgID, e.QueueID)
	if err != nil {
		return fmt.Errorf("find queue: %w", err)
	}
	return s.tellCallback(ctx, tx, e, CallbackChange{Status: AwaitsAgent, To: w.To, From: w.From, MaxAttempts: k.Callback.MaxAttempts})
}

// tellCallback has whoever keeps callbacks write down a change.
func (s *Service) tellCallback(ctx context.Context, tx db.Querier, e Entry, c CallbackChange) error {
	if s.OnCallback == nil {
		return nil
	}
	c.Org, c.QueueID, c.Origin = e.OrgID, e.QueueID, e.CallID
	if c.At.IsZero() {
		c.At = s.Now()
	}
	return s.OnCallback(ctx, tx, c)
}

// Dial rings an agent for a caller who is called back, by a call with this id that is placed next. Two nodes never do it both, and a
// number that is being dialled by another callback is a conflict (db.IsConflict).
func (s *Service) Dial(ctx context.Context, e Entry, agent string, ring time.Duration, callID string) (o Offer, err error) {
	err = s.DB.SwiftContext(ctx, func(ctx context.Context, tx db.Querier) error {
		named := e
		named.CallID = callID
		made, err := s.offer(ctx, tx, named, []string{agent}, ring)
		if err != nil {
			return err
		}
		o = made[0]
		if err := setCallback(ctx, tx, e, CallbackDials, 0, db.Time{}); err != nil {
			return err
		}
		return s.tellCallback(ctx, tx, e, CallbackChange{Status: CallbackDials, DialID: callID})
	})
	return o, err
}

// setCallback writes how the callback of an entry stands.
func setCallback(ctx context.Context, tx db.Querier, e Entry, status string, more int, retry db.Time) error {
	c := event.QueueCallback{Status: status}
	if e.Callback != nil {
		c.ScheduledAt, c.Attempts = e.Callback.ScheduledAt, e.Callback.Attempts+more
	}
	if !retry.IsZero() {
		c.ScheduledAt = retry
	}
	const text = `UPDATE queue_entries SET callback = $3, retry_at = $4 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, text, e.OrgID, e.ID, db.AsJSON(c), retry); err != nil {
		return fmt.Errorf("write callback: %w", err)
	}
	return nil
}

// offerOf finds the open offer whose call this is; none where it is no callback's, or over.
func offerOf(ctx context.Context, q db.Querier, org, call string) (Offer, error) {
	const text = offerColumns + ` AND call_id = $2 AND status IN ('offering', 'connected')`
	return scanOffer(q.QueryRow(ctx, text, org, call).Scan)
}

// CallbackAnswered says that agent and customer were connected by a call that a callback placed.
func (s *Service) CallbackAnswered(ctx context.Context, tx db.Querier, org, call string) error {
	o, err := offerOf(ctx, tx, org, call)
	if err != nil || o.Status != OfferOpen {
		return unlessNone(err)
	}
	e, err := s.Answered(ctx, tx, org, o.ID)
	if err != nil {
		return err
	}
	if err := setCallback(ctx, tx, e, CallbackCompleted, 1, db.Time{}); err != nil {
		return err
	}
	return s.tellCallback(ctx, tx, e, CallbackChange{Status: CallbackCompleted, Result: "completed", Took: true})
}

func unlessNone(err error) error {
	if db.IsNone(err) {
		return nil
	}
	return err
}

// CallbackEnded says that a call which a callback placed is over: result is how (completed, no_answer, busy, rejected, failed), and
// there says that the agent had picked up. Who was not reached is dialled again, after a while, up to max_attempts.
func (s *Service) CallbackEnded(ctx context.Context, tx db.Querier, org, call, result string, there bool) error {
	o, err := offerOf(ctx, tx, org, call)
	if db.IsNone(err) { // who was called back may wait in the queue themselves
		return s.CallEnded(ctx, tx, org, call, result, result == "completed")
	}
	if err != nil {
		return err
	}
	e, err := getEntry(ctx, tx, org, o.EntryID)
	if err != nil {
		return fmt.Errorf("read caller: %w", err)
	}
	switch {
	case e.CallID == call:
		return s.CallEnded(ctx, tx, org, call, result, result == "completed")
	case o.Status == OfferConnected:
		err := s.Complete(ctx, tx, org, e.ID, s.Now().Sub(e.ConnectedAt.Time))
		if errors.Is(err, ErrGone) { // whoever led the caller has said so already
			return nil
		}
		return err
	case there:
		return s.notReached(ctx, tx, e, o, result)
	}
	return s.agentMissed(ctx, tx, e, o, result)
}

// agentMissed lets a caller wait for another agent: this one did not pick up.
func (s *Service) agentMissed(ctx context.Context, tx db.Querier, e Entry, o Offer, result string) error {
	status := map[string]string{"no_answer": OfferNoAnswer, "busy": OfferRejected, "rejected": OfferRejected, "canceled": OfferCanceled}[result]
	if status == "" {
		status = OfferFailed
	}
	_, err := s.Declined(ctx, tx, e.OrgID, o.ID, status)
	return err
}

// notReached dials the customer again later, or gives up.
func (s *Service) notReached(ctx context.Context, tx db.Querier, e Entry, o Offer, result string) error {
	k, err := get(ctx, tx, e.OrgID, e.QueueID)
	if err != nil {
		return fmt.Errorf("find queue: %w", err)
	}
	if ok, err := s.decline(ctx, tx, o, OfferCanceled); err != nil || !ok {
		return err
	}
	if err := s.Agents.SettleIn(ctx, tx, e.OrgID, []string{o.AgentID}); err != nil {
		return err
	}
	attempts := 1
	if e.Callback != nil {
		attempts += e.Callback.Attempts
	}
	if attempts >= k.Callback.MaxAttempts {
		if err := setCallback(ctx, tx, e, CallbackHasFailed, 1, db.Time{}); err != nil {
			return err
		}
		if err := s.leave(ctx, tx, e.OrgID, e.ID, CallbackFailed, result); err != nil {
			return err
		}
		return s.tellCallback(ctx, tx, e, CallbackChange{Status: CallbackHasFailed, Result: result, Took: true})
	}
	at := s.Now().Add(pauseAfter(attempts))
	if err := setCallback(ctx, tx, e, CallbackRetries, 1, db.At(at)); err != nil {
		return err
	}
	return s.tellCallback(ctx, tx, e, CallbackChange{Status: CallbackRetries, Result: result, Took: true, At: at})
}

// pauseAfter is how long to wait after so many attempts to reach a customer.
func pauseAfter(attempts int) time.Duration {
	all := []time.Duration{2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}
	return all[min(max(attempts-1, 0), len(all)-1)]
}

// awaitsAgain says of a callback whose agent was not reached that it waits for another.
func (s *Service) awaitsAgain(ctx context.Context, tx db.Querier, entry, org, result string) error {
	e, err := getEntry(ctx, tx, org, entry)
	if err != nil || e.Status != CallbackPending {
		return err
	}
	if err := setCallback(ctx, tx, e, AwaitsAgent, 0, db.Time{}); err != nil {
		return err
	}
	return s.tellCallback(ctx, tx, e, CallbackChange{Status: AwaitsAgent, Result: result})
}

// CancelCallback takes a caller out of line who is not to be called back any more. Where they wait for no callback it does nothing.
func (s *Service) CancelCallback(ctx context.Context, tx db.Querier, org, origin string) error {
	e, err := s.OfCall(ctx, tx, org, origin)
	if err != nil || e.Status != CallbackPending && e.Status != CallbackDialing {
		return unlessNone(err)
	}
	return s.leave(ctx, tx, org, e.ID, Removed, CallbackCanceled)
}
