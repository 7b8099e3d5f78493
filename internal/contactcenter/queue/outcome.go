package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

func affected(r sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// AnswerOffer connects the agent of an offer with the caller and cancels the other offers of the caller. It returns
// ErrGone if the offer is over: another agent answered first, the caller left, or the lease ended.
func (s *Service) AnswerOffer(ctx context.Context, tx db.Querier, org, offer string) (Entry, error) {
	o, err := getOffer(ctx, tx, org, offer)
	if err != nil {
		return Entry{}, fmt.Errorf("find offer: %w", err)
	}
	if !s.cfg.Clock.Now().Before(o.LeaseUntil.Time) {
		return Entry{}, ErrGone
	}
	const text = `UPDATE queue_entries SET status = 'connected', agent_id = $3, connected_at = $4
		WHERE org_id = $1 AND id = $2 AND status IN ('offering', 'callback_dialing')`
	if ok, err := affected(tx.Exec(ctx, text, org, o.EntryID, o.AgentID, db.At(s.cfg.Clock.Now()))); err != nil || !ok {
		return Entry{}, orErrGone(err)
	}
	if ok, err := s.closeOffer(ctx, tx, o, OfferOpen, OfferConnected); err != nil || !ok {
		return Entry{}, orErrGone(err)
	}
	if err := s.cancelOffers(ctx, tx, org, o.EntryID); err != nil {
		return Entry{}, err
	}
	s.notifyChange(tx, org, o.QueueID)
	if err := s.cfg.Agents.OfferAnswered(ctx, tx, org, o.AgentID); err != nil {
		return Entry{}, err
	}
	return getEntry(ctx, tx, org, o.EntryID)
}

func orErrGone(err error) error {
	if err != nil {
		return err
	}
	return ErrGone
}

// cancelOffers cancels the open offers of an entry.
func (s *Service) cancelOffers(ctx context.Context, tx db.Querier, org, entry string) error {
	open, err := offersOf(ctx, tx, org, entry, OfferOpen)
	if err != nil {
		return err
	}
	var users []string
	for _, o := range open {
		if _, err := s.closeOffer(ctx, tx, o, OfferOpen, OfferCanceled); err != nil {
			return fmt.Errorf("cancel offer: %w", err)
		}
		users = append(users, o.AgentID)
	}
	if len(users) == 0 {
		return nil
	}
	return s.cfg.Agents.PublishPresence(ctx, tx, org, users)
}

// DeclineOffer ends an offer that was not answered: no answer, refused, or not ringable. If no other agent is being
// rung, the caller waits again at the same position. It reports whether the offer was still open.
func (s *Service) DeclineOffer(ctx context.Context, tx db.Querier, org, offer, result string) (bool, error) {
	o, err := getOffer(ctx, tx, org, offer)
	if err != nil {
		return false, fmt.Errorf("find offer: %w", err)
	}
	if open, err := s.endOffer(ctx, tx, o, result); err != nil || !open {
		return false, err
	}
	if err := s.waitForAgent(ctx, tx, o.EntryID, org, result); err != nil {
		return false, err
	}
	return true, s.countMissed(ctx, tx, o, result)
}

// endOffer ends an offer. It reports whether the offer was still open.
func (s *Service) endOffer(ctx context.Context, tx db.Querier, o Offer, result string) (bool, error) {
	if err := lockEntry(ctx, tx, o.Org, o.EntryID); err != nil {
		return false, err
	}
	if ok, err := s.closeOffer(ctx, tx, o, OfferOpen, result); err != nil || !ok {
		return false, err
	}
	const back = `UPDATE queue_entries SET status = CASE WHEN status = 'callback_dialing' THEN 'callback_pending' ELSE 'waiting' END,
		agent_id = NULL
		WHERE org_id = $1 AND id = $2 AND status IN ('offering', 'callback_dialing')
			AND NOT EXISTS (SELECT 1 FROM queue_offers o WHERE o.org_id = $1 AND o.entry_id = $2 AND o.status IN ('offering', 'connected'))`
	if _, err := tx.Exec(ctx, back, o.Org, o.EntryID); err != nil {
		return false, fmt.Errorf("let caller wait again: %w", err)
	}
	s.notifyChange(tx, o.Org, o.QueueID)
	return true, nil
}

// lockEntry locks an entry before its offers, as every transaction on them does, so that two transactions never
// deadlock.
func lockEntry(ctx context.Context, tx db.Querier, org, entry string) error {
	const text = `UPDATE queue_entries SET offers = offers WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, text, org, entry); err != nil {
		return fmt.Errorf("hold caller: %w", err)
	}
	return nil
}

// countMissed counts an offer against the agent if a phone of theirs rang: the result is no_answer or rejected.
func (s *Service) countMissed(ctx context.Context, tx db.Querier, o Offer, result string) error {
	k, err := get(ctx, tx, o.Org, o.QueueID)
	if result != OfferNoAnswer && result != OfferRejected || db.IsNone(err) {
		return s.cfg.Agents.PublishPresence(ctx, tx, o.Org, []string{o.AgentID})
	}
	if err != nil {
		return fmt.Errorf("find queue: %w", err)
	}
	return s.cfg.Agents.OfferMissed(ctx, tx, o.Org, o.AgentID, k.MissedOffersLimit,
		s.cfg.Clock.Now().Add(time.Duration(k.MissedOffersPause)*time.Second))
}

// Leave ends an entry that was not answered: abandoned, timed_out, overflowed, exited, removed or callback_failed. It
// cancels a pending callback. It returns ErrGone if the entry does not wait any more.
func (s *Service) Leave(ctx context.Context, tx db.Querier, org, entry, status, reason string) error {
	if err := s.leave(ctx, tx, org, entry, status, reason); err != nil {
		return err
	}
	e, err := getEntry(ctx, tx, org, entry)
	if err != nil || e.Callback == nil {
		return err
	}
	return s.reportCallback(ctx, tx, e, CallbackChange{Status: CallbackStatusCanceled, Result: CallbackStatusCanceled})
}

func (s *Service) leave(ctx context.Context, tx db.Querier, org, entry, status, reason string) error {
	const text = `UPDATE queue_entries SET status = $3, exited_at = $4, exit_reason = $5, agent_id = NULL WHERE org_id = $1 AND id = $2 AND ` + waitingCondition
	if ok, err := affected(tx.Exec(ctx, text, org, entry, status, db.At(s.cfg.Clock.Now()), db.Null(reason))); err != nil || !ok {
		return orErrGone(err)
	}
	if err := s.cancelOffers(ctx, tx, org, entry); err != nil {
		return err
	}
	e, err := getEntry(ctx, tx, org, entry)
	s.notifyChange(tx, org, e.QueueID)
	return err
}

// RevertAnswer reverts AnswerOffer, because the agent and the caller were not connected after all. The caller waits
// again at the same position if stays is true, else the entry ends as abandoned. It reports whether there was an
// answer to revert.
func (s *Service) RevertAnswer(ctx context.Context, tx db.Querier, org, offer, result string, stays bool) (bool, error) {
	o, err := getOffer(ctx, tx, org, offer)
	if err != nil {
		return false, fmt.Errorf("find offer: %w", err)
	}
	if err := lockEntry(ctx, tx, org, o.EntryID); err != nil {
		return false, err
	}
	if ok, err := s.closeOffer(ctx, tx, o, OfferConnected, result); err != nil || !ok {
		return false, err
	}
	const back = `UPDATE queue_entries SET status = 'waiting', agent_id = NULL, connected_at = NULL WHERE org_id = $1 AND id = $2 AND status = 'connected'`
	if _, err := tx.Exec(ctx, back, org, o.EntryID); err != nil {
		return false, fmt.Errorf("let caller wait again: %w", err)
	}
	s.notifyChange(tx, org, o.QueueID)
	if !stays {
		err = s.leave(ctx, tx, org, o.EntryID, Abandoned, "caller_hangup")
	}
	if err != nil {
		return false, err
	}
	return true, s.countMissed(ctx, tx, o, result)
}

// revertAnswers reverts the answers after the caller has left.
func (s *Service) revertAnswers(ctx context.Context, tx db.Querier, e Entry) error {
	with, err := offersOf(ctx, tx, e.OrgID, e.ID, OfferConnected)
	if err != nil {
		return err
	}
	for _, o := range with {
		if _, err := s.RevertAnswer(ctx, tx, e.OrgID, o.ID, OfferCanceled, false); err != nil {
			return err
		}
	}
	return nil
}

// CallEnded ends the open entry of a call that is over. If spoke is false, the agent that had answered was not
// connected any more, and the answer is reverted.
func (s *Service) CallEnded(ctx context.Context, tx db.Querier, org, call, reason string, spoke bool) error {
	e, err := s.EntryOfCall(ctx, tx, org, call)
	if err != nil {
		return ignoreNotFound(err)
	}
	switch {
	case e.Status == Connected && !spoke:
		err = s.revertAnswers(ctx, tx, e)
	case e.Status == Connected:
		err = s.CompleteEntry(ctx, tx, org, e.ID, s.cfg.Clock.Now().Sub(e.ConnectedAt.Time))
	case e.Status == Waiting || e.Status == Offering:
		err = s.leave(ctx, tx, org, e.ID, Abandoned, reason)
	}
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// AgentLeft implements call.AgentObserver: it completes the entry of a call that goes on without the agent who served it, as after a
// transfer. So the agent is not available for a moment before the wrap-up. It does nothing for other users.
func (s *Service) AgentLeft(ctx context.Context, tx db.Querier, org, call, agent string) error {
	e, err := s.EntryOfCall(ctx, tx, org, call)
	if err != nil {
		return ignoreNotFound(err)
	}
	if e.Status != Connected || e.OfferedAgentID == nil || *e.OfferedAgentID != agent {
		return nil
	}
	return s.CompleteEntry(ctx, tx, org, e.ID, s.cfg.Clock.Now().Sub(e.ConnectedAt.Time))
}

// CompleteEntry ends an answered entry and starts the agent's wrap-up. It returns ErrGone if the entry is over already.
func (s *Service) CompleteEntry(ctx context.Context, tx db.Querier, org, entry string, talk time.Duration) error {
	now := s.cfg.Clock.Now()
	if err := s.lockCall(ctx, tx, org, entry); err != nil {
		return err
	}
	const text = `UPDATE queue_entries SET status = 'completed', exited_at = $3, exit_reason = 'answered', talk_seconds = $4
		WHERE org_id = $1 AND id = $2 AND status = 'connected'`
	if ok, err := affected(tx.Exec(ctx, text, org, entry, db.At(now), int(talk.Round(time.Second)/time.Second))); err != nil || !ok {
		return orErrGone(err)
	}
	with, err := offersOf(ctx, tx, org, entry, OfferConnected)
	if err != nil {
		return err
	}
	for _, o := range with {
		if _, err := s.closeOffer(ctx, tx, o, OfferConnected, OfferCompleted); err != nil {
			return fmt.Errorf("end offer: %w", err)
		}
		if err := s.wrapUp(ctx, tx, o, now); err != nil {
			return err
		}
		s.notifyChange(tx, org, o.QueueID)
	}
	return nil
}

// wrapUpLookback limits how long before the end of a wrap-up the offer was made. It bounds the search for the offer.
const wrapUpLookback = 48 * time.Hour

// AgentReady implements agent.ReadyObserver: it records that an agent ended the wrap-up of the last call early. A wrap-up that needs a
// disposition goes on.
func (s *Service) AgentReady(ctx context.Context, tx db.Querier, org, agent string) error {
	const text = `UPDATE queue_offers SET wrapped_at = $3 WHERE org_id = $1 AND agent_id = $2 AND offered_at > $4 AND wrapped_at > $3
		AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.org_id = $1 AND a.user_id = $2 AND a.wrap_up_call_id = queue_offers.call_id)`
	now := s.cfg.Clock.Now()
	if _, err := tx.Exec(ctx, text, org, agent, db.At(now), db.At(now.Add(-wrapUpLookback))); err != nil {
		return fmt.Errorf("end wrap-up: %w", err)
	}
	return nil
}
