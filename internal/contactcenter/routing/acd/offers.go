package acd

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/pbx"
)

// Ringing agents for a waiting caller.

// queueWaiter passes updates from the dispatcher to the session of a caller.
type queueWaiter struct {
	callID string
	ready  chan struct{}

	mu      sync.Mutex // guards entry and pending
	entry   string     // id of the queue entry that the session knows
	pending queueUpdate
}

// queueUpdate holds changes that the session has not handled yet.
type queueUpdate struct {
	newOffers  []queue.Offer   // agents to ring
	openOffers map[string]bool // offers that are open or answered; nil: not read
	recheck    bool            // the entry is no longer in the queue
	queue      queue.Queue     // current settings, unless recheck
	unstaffed  bool            // the queue has no agents signed in
}

// post adds a change and returns at once.
func (w *queueWaiter) post(change func(*queueUpdate)) {
	w.mu.Lock()
	change(&w.pending)
	w.mu.Unlock()
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (w *queueWaiter) takeUpdate() queueUpdate {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.pending
	w.pending = queueUpdate{}
	return n
}

func (w *queueWaiter) currentEntry() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.entry
}

func (w *queueWaiter) setEntry(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entry = id
}

// handleUpdate handles the pending changes.
func (t *queueSession) handleUpdate(ctx context.Context) (string, bool) {
	n := t.waiter.takeUpdate()
	t.cancelClosedOffers(n)
	if n.recheck {
		if outcome, over := t.recheckEntry(ctx); over {
			return outcome, true
		}
	}
	for _, o := range n.newOffers {
		t.ringAgent(ctx, o)
	}
	if n.queue.ID != t.queue.ID {
		return "", false
	}
	if !n.queue.UpdatedAt.Equal(t.queue.UpdatedAt.Time) {
		t.queue = n.queue
		if err := t.applyQueueSettings(ctx); err != nil {
			return "", false
		}
	}
	if n.unstaffed && t.queue.LeaveWhenNoAgents && len(t.attempts) == 0 {
		return t.leave(ctx, queue.Overflowed, "no_agents", routing.NoResult, "no_agents")
	}
	return "", false
}

// cancelClosedOffers stops ringing agents whose offers are over: they signed out, or the caller was removed from the
// queue.
func (t *queueSession) cancelClosedOffers(n queueUpdate) {
	if n.openOffers == nil {
		return
	}
	fresh := map[string]bool{}
	for _, o := range n.newOffers {
		fresh[o.ID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(t.attempts)) {
		if _, open := n.openOffers[id]; !open && !fresh[id] && !t.offerStillOpen(id) {
			t.attempts[id].Cancel()
		}
	}
}

// offerStillOpen reads an offer again, because it can be newer than the dispatcher's plan. A read error counts as
// open. The same check runs before an agent's phone rings, because the offer may have ended meanwhile.
func (t *queueSession) offerStillOpen(id string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	open, err := t.s.cfg.Queues.IsOfferOpen(ctx, t.s.cfg.DB.Read(ctx), t.info.Org, id)
	return err != nil || open
}

// recheckEntry reads why the entry of the caller is no longer in the queue, and acts on it.
func (t *queueSession) recheckEntry(ctx context.Context) (string, bool) {
	e, err := t.s.cfg.Queues.Entry(ctx, t.s.cfg.DB.Read(ctx), t.info.Org, t.entry.ID)
	if err != nil {
		return "", false // the next update reads again
	}
	switch {
	case e.Status == queue.Removed:
		return t.removed(ctx, orEmptyString(e.ExitReason))
	case e.Status == queue.Exited:
		return t.followMove(ctx)
	case e.Status == queue.Abandoned: // ended by the sweep, because the lease was not renewed
		return t.routeOn(ctx, routing.Failed, "abandoned_in_queue"), true
	}
	return "", false
}

func orEmptyString(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// removed routes a caller whose entry was removed from the queue.
func (t *queueSession) removed(ctx context.Context, to string) (string, bool) {
	t.s.dispatcher.remove(t.info.Org, t.waiter)
	t.announcer.stop()
	t.cancelAll()
	t.v.AddEntry("queue.removed", map[string]any{"queue_id": t.queue.ID, "to": to})
	switch to {
	case "overflow":
		t.options.ReturnUnanswered = false
		return t.overflow(ctx, routing.Overflow, "overflow"), true
	case "voicemail":
		if t.v.Loop(ctx, nil) != nil {
			return routing.CallerGone, true
		}
		return t.s.cfg.Router.RouteTo(ctx, t.v, "voicemail:"+t.queue.ID), true
	}
	_ = t.v.HangUp(ctx, "api")
	return routing.CallerGone, true
}

// followMove continues the session in the queue to which the caller was moved.
func (t *queueSession) followMove(ctx context.Context) (string, bool) {
	q := t.s.cfg.DB.Read(ctx)
	e, err := t.s.cfg.Queues.EntryOfCall(ctx, q, t.info.Org, t.info.CallID)
	if err != nil {
		return "", false
	}
	k, err := t.s.cfg.Queues.Get(ctx, q, t.info.Org, e.QueueID)
	if err != nil {
		return "", false
	}
	t.entry, t.queue, t.waitExpired, t.announcer.key = e, k, false, ""
	t.waiter.setEntry(e.ID)
	t.v.AddEntry("queue.moved", map[string]any{"queue_id": k.ID})
	if err := t.applyQueueSettings(ctx); err != nil {
		return "", false
	}
	t.s.WakeDispatcher(t.info.Org)
	return "", false
}

// ringAgent rings an agent.
func (t *queueSession) ringAgent(ctx context.Context, o queue.Offer) {
	if o.EntryID != t.entry.ID {
		return
	}
	a, err := t.v.Ring(ctx, "user:"+o.AgentID, pbx.RingOptions{Timeout: seconds(t.queue.RingTimeout), Show: t.queue.Title(), Music: true,
		Whisper: t.whisper, Record: t.recordingOverride(), BeforeRing: func(context.Context) bool { return t.offerStillOpen(o.ID) },
		Claim: func(ctx context.Context) error { return t.claimOffer(ctx, o) }})
	if err != nil {
		if !errors.Is(err, pbx.ErrGone) {
			t.s.cfg.Log.Warn("agent not rung", "call", t.info.CallID, "agent", o.AgentID, "err", err)
		}
		t.endOffer(o.ID, queue.OfferFailed, false)
		return
	}
	t.attempts[o.ID] = a
	t.v.AddEntry("queue.agent_rung", map[string]any{"queue_id": t.queue.ID, "agent_id": o.AgentID})
	t.watchers.Go(func() {
		select {
		case r := <-a.Done():
			select {
			case t.results <- offerResult{o.ID, r}:
			case <-t.closed:
			}
		case <-t.closed:
		}
	})
}

// recordingOverride reports whether the conversation is recorded; nil: by the organisation's setting.
func (t *queueSession) recordingOverride() *bool {
	if t.queue.RecordingMode == "inherit" {
		return nil
	}
	on := t.queue.RecordingMode == "on"
	return &on
}

// claimOffer assigns the caller to the agent who answered. Only one of several concurrent claims succeeds.
func (t *queueSession) claimOffer(ctx context.Context, o queue.Offer) error {
	return t.s.cfg.DB.TxRelaxedContext(ctx, func(ctx context.Context, tx db.Querier) error {
		_, err := t.s.cfg.Queues.AnswerOffer(ctx, tx, t.info.Org, o.ID)
		return err
	})
}

// offerEnds maps the result of ringing to the end of the offer.
var offerEnds = map[string]string{"no_answer": queue.OfferNoAnswer, "busy": queue.OfferRejected, "rejected": queue.OfferRejected,
	"lost": queue.OfferRejected, "canceled": queue.OfferCanceled}

// handleResult handles the result of an offer.
func (t *queueSession) handleResult(ctx context.Context, r offerResult) (string, bool) {
	a := t.attempts[r.offerID]
	delete(t.attempts, r.offerID)
	if r.Status == "answered" && a != nil {
		return t.waitConversation(ctx, a), true
	}
	end, known := offerEnds[r.Status]
	if !known {
		end = queue.OfferFailed
	}
	if !t.endOffer(r.offerID, end, true) {
		return t.fail(ctx, "offer not ended", errors.New(r.Status))
	}
	if t.waitExpired && len(t.attempts) == 0 {
		return t.leaveExpired(ctx)
	}
	return "", false
}

// endOffer ends an offer that was not answered. It returns false if the database write failed.
func (t *queueSession) endOffer(offer, end string, stays bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), finalWriteTimeout)
	defer cancel()
	err := t.s.cfg.DB.TxRelaxedContext(ctx, func(ctx context.Context, tx db.Querier) error {
		open, err := t.s.cfg.Queues.DeclineOffer(ctx, tx, t.info.Org, offer, end)
		if err == nil && !open {
			_, err = t.s.cfg.Queues.RevertAnswer(ctx, tx, t.info.Org, offer, end, stays)
		}
		return err
	})
	if err != nil {
		t.s.cfg.Log.Error("offer not ended", "call", t.info.CallID, "offer", offer, "err", err)
	}
	return err == nil
}

// waitConversation waits until the agent has left the call, and starts the agent's wrap-up.
func (t *queueSession) waitConversation(ctx context.Context, a *pbx.Attempt) string {
	t.s.dispatcher.remove(t.info.Org, t.waiter)
	t.announcer.stop()
	clear(t.attempts)
	var talked time.Duration
	select {
	case talked = <-a.TalkTime():
	case <-ctx.Done(): // the script ends with the call
		return routing.Answered
	}
	bounded, cancel := context.WithTimeout(context.Background(), finalWriteTimeout)
	defer cancel()
	err := t.s.cfg.DB.TxRelaxedContext(bounded, func(ctx context.Context, tx db.Querier) error {
		return t.s.cfg.Queues.CompleteEntry(ctx, tx, t.info.Org, t.entry.ID, talked)
	})
	if err != nil && !errors.Is(err, queue.ErrGone) {
		t.s.cfg.Log.Error("end of conversation not stored", "call", t.info.CallID, "err", err)
	}
	t.s.WakeDispatcher(t.info.Org)
	return routing.Answered
}
