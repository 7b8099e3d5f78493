package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/observe"
	"soniq/internal/telephony/number"
)

// States of a callback. It waits for an agent at the position of the caller, is dialled, and is dialled again if the
// customer was not reached.
const (
	CallbackStatusWaitingAgent = "waiting_agent"
	CallbackStatusDialing      = "dialing"
	CallbackStatusRetryWait    = "retry_wait"
	CallbackStatusCompleted    = "completed"
	CallbackStatusFailed       = "failed"
	CallbackStatusCanceled     = "canceled"
)

// CallbackChange is a change of a callback. Origin is the call in which the callback was requested.
type CallbackChange struct {
	Org, QueueID, Origin string
	Status               string
	To, From             string // customer's number and caller ID; set when the callback is requested
	MaxAttempts          int    // set when the callback is requested
	DialCallID           string // the placed call, with CallbackStatusDialing
	Result               string // of the attempt that ended; "" if none ended
	CountsAsAttempt      bool   // the attempt counts, because an agent had picked up
	At                   time.Time
}

// CallbackRequest holds the number to call back and the caller ID to show.
type CallbackRequest struct{ To, From string }

// ConvertToCallback lets a caller hang up and keep the position. The callback is dialled when an agent is free. If the number waits for a
// callback of the queue already, it keeps the earlier position, and is dialled once.
func (s *Service) ConvertToCallback(ctx context.Context, tx db.Querier, org, entry string, w CallbackRequest) error {
	if kept, err := s.mergeCallbacks(ctx, tx, org, entry, w.To); kept || err != nil {
		return err
	}
	const text = `UPDATE queue_entries SET status = 'callback_pending', callback = $3, agent_id = NULL
		WHERE org_id = $1 AND id = $2 AND status IN ('waiting', 'offering')`
	c := event.QueueCallback{Status: CallbackStatusWaitingAgent, ScheduledAt: db.At(s.cfg.Clock.Now())}
	if ok, err := affected(tx.Exec(ctx, text, org, entry, db.AsJSON(c))); err != nil || !ok {
		return orErrGone(err)
	}
	if err := s.cancelOffers(ctx, tx, org, entry); err != nil {
		return err
	}
	e, err := getEntry(ctx, tx, org, entry)
	if err != nil {
		return fmt.Errorf("read caller: %w", err)
	}
	s.notifyChange(tx, org, e.QueueID)
	return s.callbackAccepted(ctx, tx, e, w)
}

// callbackExists is the exit_reason of an entry whose number waits for a callback at another position.
const callbackExists = "callback_exists"

// mergeCallbacks ends the later one of an entry and of the callback that a number waits for in the same queue. kept is true if the entry
// ended.
func (s *Service) mergeCallbacks(ctx context.Context, tx db.Querier, org, entry, to string) (kept bool, err error) {
	e, err := getEntry(ctx, tx, org, entry)
	if err != nil {
		return false, fmt.Errorf("read caller: %w", err)
	}
	other, err := callbackTo(ctx, tx, e, to)
	switch {
	case db.IsNone(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("find the callback of a number: %w", err)
	case other.Status == CallbackDialing || other.isAhead(e):
		return true, s.leave(ctx, tx, org, entry, Exited, callbackExists)
	}
	if err := s.leave(ctx, tx, org, other.ID, Exited, callbackExists); err != nil {
		return false, err
	}
	return false, s.reportCallback(ctx, tx, other, CallbackChange{Status: CallbackStatusCanceled})
}

// callbackTo returns the entry of the callback, other than e, that a number waits for in the queue of e. It returns db.ErrNone if there is
// none.
func callbackTo(ctx context.Context, q db.Querier, e Entry, to string) (Entry, error) {
	given, other := number.Spellings(to)
	const text = entryColumns + ` AND queue_id = $2 AND id <> $3 AND status IN ('callback_pending', 'callback_dialing')
		AND call_id IN (SELECT origin_call_id FROM callbacks WHERE org_id = $1 AND queue_id = $2 AND origin = 'queue'
			AND finished_at IS NULL AND to_number IN ($4, $5)) ORDER BY priority DESC, place, id LIMIT 1`
	return scanEntry(q.QueryRow(ctx, text, e.OrgID, e.QueueID, e.ID, given, other).Scan)
}

// isAhead reports whether an entry has an earlier position than another one.
func (e Entry) isAhead(of Entry) bool {
	return e.Priority > of.Priority || e.Priority == of.Priority && e.orderKey < of.orderKey
}

// EnterCallback adds a callback without a wait before, at the end of the queue.
func (s *Service) EnterCallback(ctx context.Context, tx db.Querier, c Caller, w CallbackRequest) (Entry, error) {
	e, err := s.Enter(ctx, tx, c)
	if err != nil {
		return e, err
	}
	if err := s.ConvertToCallback(ctx, tx, c.Org, e.ID, w); err != nil {
		return e, err
	}
	return getEntry(ctx, tx, c.Org, e.ID)
}

func (s *Service) callbackAccepted(ctx context.Context, tx db.Querier, e Entry, w CallbackRequest) error {
	k, err := get(ctx, tx, e.OrgID, e.QueueID)
	if err != nil {
		return fmt.Errorf("find queue: %w", err)
	}
	return s.reportCallback(ctx, tx, e, CallbackChange{Status: CallbackStatusWaitingAgent, To: w.To, From: w.From,
		MaxAttempts: k.Callback.MaxAttempts})
}

// reportCallback notifies observers, which store the change.
func (s *Service) reportCallback(ctx context.Context, tx db.Querier, e Entry, c CallbackChange) error {
	c.Org, c.QueueID, c.Origin = e.OrgID, e.QueueID, e.CallID
	if c.At.IsZero() {
		c.At = s.cfg.Clock.Now()
	}
	return observe.Each(s.observers.callbacks, func(o CallbackObserver) error { return o.CallbackChanged(ctx, tx, c) })
}

// DialCallback makes an offer to an agent for a callback. The caller places the call with this id next. Only one of
// several nodes succeeds. If another callback is dialling the same number, the error is a conflict (db.IsConflict).
func (s *Service) DialCallback(ctx context.Context, e Entry, agent string, ring time.Duration, callID string) (o Offer, err error) {
	err = s.cfg.DB.TxRelaxedContext(ctx, func(ctx context.Context, tx db.Querier) error {
		named := e
		named.CallID = callID
		made, err := s.offer(ctx, tx, named, []string{agent}, ring)
		if err != nil {
			return err
		}
		o = made[0]
		if err := setCallback(ctx, tx, e, CallbackStatusDialing, 0, db.Time{}); err != nil {
			return err
		}
		return s.reportCallback(ctx, tx, e, CallbackChange{Status: CallbackStatusDialing, DialCallID: callID})
	})
	return o, err
}

// setCallback stores the state of the callback of an entry.
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

// offerOfCall returns the open offer of a call placed by a callback. It returns db.ErrNone if the call is no callback
// or the offer is over.
func offerOfCall(ctx context.Context, q db.Querier, org, call string) (Offer, error) {
	const text = offerColumns + ` AND call_id = $2 AND status IN ('offering', 'connected')`
	return scanOffer(q.QueryRow(ctx, text, org, call).Scan)
}

// CallbackAnswered records that a callback connected the agent and the customer.
func (s *Service) CallbackAnswered(ctx context.Context, tx db.Querier, org, call string) error {
	o, err := offerOfCall(ctx, tx, org, call)
	if err != nil || o.Status != OfferOpen {
		return ignoreNotFound(err)
	}
	e, err := s.AnswerOffer(ctx, tx, org, o.ID)
	if err != nil {
		return err
	}
	if err := setCallback(ctx, tx, e, CallbackStatusCompleted, 1, db.Time{}); err != nil {
		return err
	}
	return s.reportCallback(ctx, tx, e, CallbackChange{Status: CallbackStatusCompleted, Result: "completed", CountsAsAttempt: true})
}

func ignoreNotFound(err error) error {
	if db.IsNone(err) {
		return nil
	}
	return err
}

// CallbackEnded records the end of a call placed by a callback. result is completed, no_answer, busy, rejected or
// failed. there is true if the agent had picked up. If the customer was not reached, the callback is dialled again
// after a delay, up to max_attempts.
func (s *Service) CallbackEnded(ctx context.Context, tx db.Querier, org, call, result string, there bool) error {
	o, err := offerOfCall(ctx, tx, org, call)
	if db.IsNone(err) { // the customer of the callback may be waiting in the queue
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
		err := s.CompleteEntry(ctx, tx, org, e.ID, s.cfg.Clock.Now().Sub(e.ConnectedAt.Time))
		if errors.Is(err, ErrGone) { // the script of the caller recorded it already
			return nil
		}
		return err
	case there:
		return s.customerMissed(ctx, tx, e, o, result)
	}
	return s.callbackAgentMissed(ctx, tx, e, o, result)
}

// callbackAgentMissed returns the callback to the queue, because the agent did not pick up.
func (s *Service) callbackAgentMissed(ctx context.Context, tx db.Querier, e Entry, o Offer, result string) error {
	status := map[string]string{"no_answer": OfferNoAnswer, "busy": OfferRejected, "rejected": OfferRejected,
		"canceled": OfferCanceled}[result]
	if status == "" {
		status = OfferFailed
	}
	_, err := s.DeclineOffer(ctx, tx, e.OrgID, o.ID, status)
	return err
}

// customerMissed schedules the next attempt, or fails the callback after the last one.
func (s *Service) customerMissed(ctx context.Context, tx db.Querier, e Entry, o Offer, result string) error {
	k, err := get(ctx, tx, e.OrgID, e.QueueID)
	if err != nil {
		return fmt.Errorf("find queue: %w", err)
	}
	if ok, err := s.endOffer(ctx, tx, o, OfferCanceled); err != nil || !ok {
		return err
	}
	if err := s.cfg.Agents.PublishPresence(ctx, tx, e.OrgID, []string{o.AgentID}); err != nil {
		return err
	}
	attempts := 1
	if e.Callback != nil {
		attempts += e.Callback.Attempts
	}
	if attempts >= k.Callback.MaxAttempts {
		if err := setCallback(ctx, tx, e, CallbackStatusFailed, 1, db.Time{}); err != nil {
			return err
		}
		if err := s.leave(ctx, tx, e.OrgID, e.ID, CallbackFailed, result); err != nil {
			return err
		}
		return s.reportCallback(ctx, tx, e, CallbackChange{Status: CallbackStatusFailed, Result: result, CountsAsAttempt: true})
	}
	at := s.cfg.Clock.Now().Add(retryDelay(attempts))
	if err := setCallback(ctx, tx, e, CallbackStatusRetryWait, 1, db.At(at)); err != nil {
		return err
	}
	return s.reportCallback(ctx, tx, e, CallbackChange{Status: CallbackStatusRetryWait, Result: result, CountsAsAttempt: true, At: at})
}

// retryDelay returns the delay after the given number of attempts to reach a customer.
func retryDelay(attempts int) time.Duration {
	all := []time.Duration{2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}
	return all[min(max(attempts-1, 0), len(all)-1)]
}

// waitForAgent sets a callback whose agent did not pick up to wait for another agent.
func (s *Service) waitForAgent(ctx context.Context, tx db.Querier, entry, org, result string) error {
	e, err := getEntry(ctx, tx, org, entry)
	if err != nil || e.Status != CallbackPending {
		return err
	}
	if err := setCallback(ctx, tx, e, CallbackStatusWaitingAgent, 0, db.Time{}); err != nil {
		return err
	}
	return s.reportCallback(ctx, tx, e, CallbackChange{Status: CallbackStatusWaitingAgent, Result: result})
}

// CancelCallback removes a callback from its queue. It does nothing if the call has none.
func (s *Service) CancelCallback(ctx context.Context, tx db.Querier, org, origin string) error {
	e, err := s.EntryOfCall(ctx, tx, org, origin)
	if err != nil || e.Status != CallbackPending && e.Status != CallbackDialing {
		return ignoreNotFound(err)
	}
	return s.leave(ctx, tx, org, e.ID, Removed, CallbackStatusCanceled)
}
