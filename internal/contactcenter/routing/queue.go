package routing

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/media"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// How a caller enters, waits in and leaves a queue.

// queueSession is one caller's wait in a queue. One goroutine runs it.
type stay struct {
	s    *Service
	v    *pbx.Visit
	i    pbx.Info
	wish Wish
	w    *waiter

	e       queue.Entry
	k       queue.Queue
	whisper *media.Clip
	rung    map[string]*pbx.Attempt // by offer id
	results chan rung
	due     bool // the longest wait has passed
	limit   *time.Timer
	voice   voice

	over  chan struct{} // closed when the session ends
	aside sync.WaitGroup
}

// offerResult is the result of ringing an agent for an offer.
type rung struct {
	offer string
	pbx.Result
}

// waitInQueue lets a caller wait in a queue until an agent answers or the caller is routed elsewhere.
func (s *Service) wait(ctx context.Context, v *pbx.Visit, id string, _ pbx.Lead) (outcome string) {
	t := &stay{s: s, v: v, i: v.Info(), wish: wish(ctx), rung: map[string]*pbx.Attempt{}, results: make(chan rung, 8), over: make(chan struct{})}
	t.w = &waiter{callID: t.i.CallID, ready: make(chan struct{}, 1)}
	var err error
	if t.k, err = s.Queues.Get(ctx, s.DB.Read(ctx), t.i.Org, id); err != nil {
		v.Step("queue_missing", map[string]any{"queue_id": id})
		return orGone(unlessNone(err))
	}
	if err := v.Enter(ctx, pbx.Place{Stage: "queue"}); err != nil {
		return Gone
	}
	v.Missed("abandoned_in_queue")
	if err := t.enter(ctx); err != nil {
		return t.refused(ctx, err)
	}
	t.w.setEntry(t.e.ID)
	v.Step("queue_entered", map[string]any{"queue_id": id, "position": t.e.Position})
	return t.lead(ctx)
}

func unlessNone(err error) error {
	if db.IsNone(err) {
		return nil
	}
	return err
}

// enter creates the queue entry. If the call still has an entry, as when the agent sends the caller to another queue,
// that entry ends first.
func (t *stay) enter(ctx context.Context) (err error) {
	c := queue.Caller{Org: t.i.Org, QueueID: t.k.ID, CallID: t.i.CallID, From: t.i.From, Priority: t.wish.Priority}
	if t.s.Calls.Contact != nil {
		c.Contact = t.s.Calls.Contact(ctx, t.i.Org, t.i.From)
	}
	enter := func(ctx context.Context, tx db.Querier) error {
		t.e, err = t.s.Queues.Enter(ctx, tx, c)
		return err
	}
	if err := t.s.DB.SwiftContext(ctx, enter); !db.IsConflict(err) {
		return err
	}
	return t.s.DB.SwiftContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := t.s.Queues.CallEnded(ctx, tx, t.i.Org, t.i.CallID, "transfer", true); err != nil {
			return err
		}
		return enter(ctx, tx)
	})
}

// routeRefused routes a caller whom the queue did not accept.
func (t *stay) refused(ctx context.Context, err error) (outcome string) {
	switch {
	case errors.Is(err, queue.ErrFull):
		return t.overflow(ctx, Overflow, "overflow")
	case errors.Is(err, queue.ErrClosed):
		return t.overflow(ctx, Overflow, "after_hours")
	case errors.Is(err, queue.ErrNoAgents):
		return t.overflow(ctx, Empty, "no_agents")
	case ctx.Err() != nil:
		return Gone
	}
	t.s.Log.Error("queue not entered", "call", t.i.CallID, "queue", t.k.ID, "err", err)
	return Failed
}

// waitLoop plays music and announcements, rings agents and handles keys until the wait ends.
func (t *stay) lead(ctx context.Context) (outcome string) {
	t.limit = time.NewTimer(time.Hour)
	defer t.limit.Stop()
	if err := t.settle(ctx); err != nil {
		t.gone()
		return Gone
	}
	t.s.distributor.add(t.i.Org, t.w)
	defer t.s.distributor.remove(t.i.Org, t.w)
	defer t.finish()
	for {
		var next func(context.Context) (string, bool)
		select {
		case <-ctx.Done():
			t.gone()
			return Gone
		case <-t.w.ready:
			next = t.news
		case r := <-t.results:
			next = func(ctx context.Context) (string, bool) { return t.result(ctx, r) }
		case <-t.limit.C:
			next = t.waitedEnough
		case <-t.voice.next():
			next = t.announce
		case <-t.voice.said:
			next = t.announced
		case <-t.v.Pressed():
			next = t.key
		}
		if outcome, over := next(ctx); over {
			return outcome
		}
	}
}

// finish stops the announcement and waits for the goroutines of the session.
func (t *stay) finish() {
	t.voice.stop()
	close(t.over)
	t.aside.Wait()
}

// applyQueueSettings applies the settings of the queue: at the start, when they change, and after a move to another
// queue.
func (t *stay) settle(ctx context.Context) error {
	t.whisper = nil
	if id := t.k.WhisperAudioID; id != nil {
		clip, err := t.v.Clip(ctx, *id)
		if err != nil {
			t.s.Log.Warn("whisper not loaded", "queue", t.k.ID, "err", err)
		}
		t.whisper = clip
	}
	music := t.v.Music()
	if id := t.k.MusicAudioID; id != nil {
		if clip, err := t.v.Clip(ctx, *id); err == nil {
			music = clip
		} else {
			t.s.Log.Warn("music not loaded", "queue", t.k.ID, "err", err)
		}
	}
	t.limit.Reset(time.Until(t.until()))
	t.plan()
	return t.v.Loop(ctx, music)
}

// deadline returns when the longest wait of the caller ends.
func (t *stay) until() time.Time {
	most := seconds(t.k.MaxWait)
	if t.wish.MaxWait > 0 {
		most = min(most, t.wish.MaxWait)
	}
	if o := t.k.Overflow; o != nil && o.AfterSeconds != nil && !t.wish.Back {
		most = min(most, seconds(*o.AfterSeconds))
	}
	return t.e.EnteredAt.Add(most)
}

// overflowsEarly reports whether the overflow applies before the queue's longest wait.
func (t *stay) early() bool {
	o := t.k.Overflow
	return o != nil && o.AfterSeconds != nil && !t.wish.Back && *o.AfterSeconds < t.k.MaxWait
}

// checkDeadline routes the caller onwards at the deadline. If agents are being rung at that time, it waits for their
// result.
func (t *stay) waitedEnough(ctx context.Context) (string, bool) {
	if left := time.Until(t.until()); left > 0 {
		t.limit.Reset(left)
		return "", false
	}
	if t.due = true; len(t.rung) > 0 {
		return "", false
	}
	return t.timeUp(ctx)
}

func (t *stay) timeUp(ctx context.Context) (string, bool) {
	if t.early() {
		return t.leave(ctx, queue.Overflowed, "after_seconds", Overflow, "overflow")
	}
	return t.leave(ctx, queue.TimedOut, "max_wait", Timeout, "overflow")
}

// leave ends the queue entry and routes the caller onwards. If an agent has answered at the same moment, the caller
// stays.
func (t *stay) leave(ctx context.Context, status, reason, outcome, missed string) (string, bool) {
	err := t.s.DB.SwiftContext(ctx, func(ctx context.Context, tx db.Querier) error {
		return t.s.Queues.Leave(ctx, tx, t.i.Org, t.e.ID, status, reason)
	})
	if errors.Is(err, queue.ErrGone) {
		return "", false
	}
	if err != nil {
		return t.failed(ctx, "caller not routed on", err)
	}
	t.v.Step("queue_left", map[string]any{"queue_id": t.k.ID, "status": status, "reason": reason})
	return t.on(ctx, outcome, missed), true
}

// fail ends a session after an error.
func (t *stay) failed(ctx context.Context, what string, err error) (string, bool) {
	if ctx.Err() != nil {
		return "", false
	}
	t.s.Log.Error(what, "call", t.i.CallID, "queue", t.k.ID, "err", err)
	return t.on(ctx, Failed, "overflow"), true
}

// routeOn cancels all ringing and routes the caller onwards.
func (t *stay) on(ctx context.Context, outcome, missed string) string {
	t.s.distributor.remove(t.i.Org, t.w)
	t.voice.stop()
	t.cancelAll()
	return t.overflow(ctx, outcome, missed)
}

// overflow routes the caller to the queue's overflow destination. If the route options want an unanswered caller
// returned, it only returns the outcome.
func (t *stay) overflow(ctx context.Context, outcome, missed string) string {
	t.v.Missed(missed)
	if t.wish.Back || t.k.Overflow == nil {
		return outcome
	}
	if t.e.ID != "" && t.v.Loop(ctx, nil) != nil {
		return Gone
	}
	t.v.Step("queue_overflow", map[string]any{"queue_id": t.k.ID, "to": t.k.Overflow.To})
	t.v.Transferred(ctx, t.k.Overflow.To)
	if led := t.s.lead(ctx, t.v, t.k.Overflow.To); done(led) {
		return led
	}
	return outcome
}

func (t *stay) cancelAll() {
	for _, a := range t.rung {
		a.Cancel()
	}
	clear(t.rung)
}

// recordGone ends the entry of a caller who hung up or is routed elsewhere. If the call has ended, the transaction
// that ends the call also ends the entry.
func (t *stay) gone() {
	ctx, cancel := context.WithTimeout(context.Background(), lastWrites)
	defer cancel()
	status, reason := queue.Abandoned, "caller_hangup"
	if !t.v.Hungup() {
		rest(ctx, time.Second) // give that transaction time, if the call has ended
		status, reason = queue.Exited, "transfer"
	}
	err := t.s.DB.SwiftContext(ctx, func(ctx context.Context, tx db.Querier) error {
		err := t.s.Queues.Leave(ctx, tx, t.i.Org, t.e.ID, status, reason)
		if !errors.Is(err, queue.ErrGone) {
			return err
		}
		for offer := range t.rung {
			if _, err := t.s.Queues.Unanswer(ctx, tx, t.i.Org, offer, queue.OfferCanceled, false); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.s.Log.Error("queue entry of a gone caller not ended", "call", t.i.CallID, "err", err)
	}
}

// finalWriteTimeout limits the last database writes of a session.
const lastWrites = 20 * time.Second

// ownNumber returns the number of the organisation that a caller dialled. It is the caller ID of a callback. It
// returns "" if the caller dialled none.
func ownNumber(i pbx.Info) string {
	if i.NumberID == "" {
		return ""
	}
	return i.To
}

// callbackNumber returns the number at which a caller can be called back; "" if there is none.
func callable(i pbx.Info) string {
	if i.From == call.Anonymous || slices.Contains([]string{"", "anonymous"}, i.From) {
		return ""
	}
	return i.From
}
