package routing

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/pbx"
)

// Ringing agents for a waiting caller.

// queueWaiter passes updates from the dispatcher to the session of a caller.
type waiter struct {
	callID string
	ready  chan struct{}

	mu    sync.Mutex // guards entry and pending
	entry string     // id of the queue entry that the session knows
	left  news
}

// queueUpdate holds changes that the session has not handled yet.
type news struct {
	ring   []queue.Offer   // agents to ring
	offers map[string]bool // offers that are open or answered; nil: not read
	look   bool            // the entry is no longer in the queue
	queue  queue.Queue     // current settings, unless recheck
	empty  bool            // the queue has no agents signed in
}

// post adds a change and returns at once.
func (w *waiter) post(change func(*news)) {
	w.mu.Lock()
	change(&w.left)
	w.mu.Unlock()
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (w *waiter) take() news {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.left
	w.left = news{}
	return n
}

func (w *waiter) entryNow() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.entry
}

func (w *waiter) setEntry(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entry = id
}

// handleUpdate handles the pending changes.
func (t *stay) news(ctx context.Context) (string, bool) {
	n := t.w.take()
	t.withdraw(n)
	if n.look {
		if outcome, over := t.look(ctx); over {
			return outcome, true
		}
	}
	for _, o := range n.ring {
		t.ring(ctx, o)
	}
	if n.queue.ID != t.k.ID {
		return "", false
	}
	if !n.queue.UpdatedAt.Equal(t.k.UpdatedAt.Time) {
		t.k = n.queue
		if err := t.settle(ctx); err != nil {
			return "", false
		}
	}
	if n.empty && t.k.LeaveWhenNoAgents && len(t.rung) == 0 {
		return t.leave(ctx, queue.Overflowed, "no_agents", Empty, "no_agents")
	}
	return "", false
}

// cancelClosedOffers stops ringing agents whose offers are over: they signed out, or the caller was removed from the
// queue.
func (t *stay) withdraw(n news) {
	if n.offers == nil {
		return
	}
	fresh := map[string]bool{}
	for _, o := range n.ring {
		fresh[o.ID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(t.rung)) {
		if _, open := n.offers[id]; !open && !fresh[id] && !t.stillOpen(id) {
			t.rung[id].Cancel()
		}
	}
}

// offerStillOpen reads an offer again, because it can be newer than the dispatcher's plan. A read error counts as
// open. The same check runs before an agent's phone rings, because the offer may have ended meanwhile.
func (t *stay) stillOpen(id string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	open, err := t.s.Queues.OfferOpen(ctx, t.s.DB.Read(ctx), t.i.Org, id)
	return err != nil || open
}

// recheckEntry reads why the entry of the caller is no longer in the queue, and acts on it.
func (t *stay) look(ctx context.Context) (string, bool) {
	e, err := t.s.Queues.Entry(ctx, t.s.DB.Read(ctx), t.i.Org, t.e.ID)
	if err != nil {
		return "", false // the next update reads again
	}
	switch {
	case e.Status == queue.Removed:
		return t.removed(ctx, text(e.ExitReason))
	case e.Status == queue.Exited:
		return t.moved(ctx)
	case e.Status == queue.Abandoned: // ended by the sweep, because the lease was not renewed
		return t.on(ctx, Failed, "abandoned_in_queue"), true
	}
	return "", false
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// removed routes a caller whose entry was removed from the queue.
func (t *stay) removed(ctx context.Context, to string) (string, bool) {
	t.s.distributor.remove(t.i.Org, t.w)
	t.voice.stop()
	t.cancelAll()
	t.v.Step("queue_removed", map[string]any{"queue_id": t.k.ID, "to": to})
	switch to {
	case "overflow":
		t.wish.Back = false
		return t.overflow(ctx, Overflow, "overflow"), true
	case "voicemail":
		if t.v.Loop(ctx, nil) != nil {
			return Gone, true
		}
		return t.s.lead(ctx, t.v, "voicemail:"+t.k.ID), true
	}
	_ = t.v.HangUp(ctx, "api")
	return Gone, true
}

// followMove continues the session in the queue to which the caller was moved.
func (t *stay) moved(ctx context.Context) (string, bool) {
	q := t.s.DB.Read(ctx)
	e, err := t.s.Queues.OfCall(ctx, q, t.i.Org, t.i.CallID)
	if err != nil {
		return "", false
	}
	k, err := t.s.Queues.Get(ctx, q, t.i.Org, e.QueueID)
	if err != nil {
		return "", false
	}
	t.e, t.k, t.due = e, k, false
	t.w.setEntry(e.ID)
	t.v.Step("queue_moved", map[string]any{"queue_id": k.ID})
	if err := t.settle(ctx); err != nil {
		return "", false
	}
	t.s.Touch(t.i.Org)
	return "", false
}

// ringAgent rings an agent.
func (t *stay) ring(ctx context.Context, o queue.Offer) {
	if o.EntryID != t.e.ID {
		return
	}
	a, err := t.v.Ring(ctx, "user:"+o.AgentID, pbx.Ringing{Timeout: seconds(t.k.RingTimeout), Show: t.k.Title(), Music: true, Whisper: t.whisper,
		Record: t.recorded(), Open: func(context.Context) bool { return t.stillOpen(o.ID) }, Claim: func(ctx context.Context) error { return t.claim(ctx, o) }})
	if err != nil {
		if !errors.Is(err, pbx.ErrGone) {
			t.s.Log.Warn("agent not rung", "call", t.i.CallID, "agent", o.AgentID, "err", err)
		}
		t.declined(o.ID, queue.OfferFailed, false)
		return
	}
	t.rung[o.ID] = a
	t.v.Step("agent_rung", map[string]any{"queue_id": t.k.ID, "agent_id": o.AgentID})
	t.aside.Go(func() {
		select {
		case r := <-a.Done():
			select {
			case t.results <- rung{o.ID, r}:
			case <-t.over:
			}
		case <-t.over:
		}
	})
}

// recordingOverride reports whether the conversation is recorded; nil: by the organisation's setting.
func (t *stay) recorded() *bool {
	if t.k.RecordingMode == "inherit" {
		return nil
	}
	on := t.k.RecordingMode == "on"
	return &on
}

// claimOffer assigns the caller to the agent who answered. Only one of several concurrent claims succeeds.
func (t *stay) claim(ctx context.Context, o queue.Offer) error {
	return t.s.DB.SwiftContext(ctx, func(ctx context.Context, tx db.Querier) error {
		_, err := t.s.Queues.Answered(ctx, tx, t.i.Org, o.ID)
		return err
	})
}

// offerEnds maps the result of ringing to the end of the offer.
var ends = map[string]string{"no_answer": queue.OfferNoAnswer, "busy": queue.OfferRejected, "rejected": queue.OfferRejected,
	"lost": queue.OfferRejected, "canceled": queue.OfferCanceled}

// handleResult handles the result of an offer.
func (t *stay) result(ctx context.Context, r rung) (string, bool) {
	a := t.rung[r.offer]
	delete(t.rung, r.offer)
	if r.What == "answered" && a != nil {
		return t.talk(ctx, a), true
	}
	end, known := ends[r.What]
	if !known {
		end = queue.OfferFailed
	}
	if !t.declined(r.offer, end, true) {
		return t.failed(ctx, "offer not ended", errors.New(r.What))
	}
	if t.due && len(t.rung) == 0 {
		return t.timeUp(ctx)
	}
	return "", false
}

// endOffer ends an offer that was not answered. It returns false if the database write failed.
func (t *stay) declined(offer, end string, stays bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), lastWrites)
	defer cancel()
	err := t.s.DB.SwiftContext(ctx, func(ctx context.Context, tx db.Querier) error {
		open, err := t.s.Queues.Declined(ctx, tx, t.i.Org, offer, end)
		if err == nil && !open {
			_, err = t.s.Queues.Unanswer(ctx, tx, t.i.Org, offer, end, stays)
		}
		return err
	})
	if err != nil {
		t.s.Log.Error("offer not ended", "call", t.i.CallID, "offer", offer, "err", err)
	}
	return err == nil
}

// waitConversation waits until the agent has left the call, and starts the agent's wrap-up.
func (t *stay) talk(ctx context.Context, a *pbx.Attempt) string {
	t.s.distributor.remove(t.i.Org, t.w)
	t.voice.stop()
	clear(t.rung)
	var talked time.Duration
	select {
	case talked = <-a.Over():
	case <-ctx.Done(): // the script ends with the call
		return Answered
	}
	bounded, cancel := context.WithTimeout(context.Background(), lastWrites)
	defer cancel()
	err := t.s.DB.SwiftContext(bounded, func(ctx context.Context, tx db.Querier) error {
		return t.s.Queues.Complete(ctx, tx, t.i.Org, t.e.ID, talked)
	})
	if err != nil && !errors.Is(err, queue.ErrGone) {
		t.s.Log.Error("end of conversation not stored", "call", t.i.CallID, "err", err)
	}
	t.s.Touch(t.i.Org)
	return Answered
}
