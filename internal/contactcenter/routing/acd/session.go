package acd

import (
	"context"
	"errors"
	"sync"
	"time"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/telephony/pbx"
)

// How a caller enters, waits in and leaves a queue.

// queueSession is one caller's wait in a queue. One goroutine runs it.
type queueSession struct {
	s       *Service
	v       *pbx.ScriptedCall
	info    pbx.Info
	options routing.RouteOptions
	waiter  *queueWaiter

	entry        queue.Entry
	queue        queue.Queue
	whisper      *clip.Clip
	attempts     map[string]*pbx.Attempt // by offer id
	results      chan offerResult
	waitExpired  bool // the longest wait has passed
	maxWaitTimer *time.Timer
	announcer    announcer

	closed   chan struct{} // closed when the session ends
	watchers sync.WaitGroup
}

// offerResult is the result of ringing an agent for an offer.
type offerResult struct {
	offerID string
	pbx.Result
}

// WaitInQueue lets a caller wait in a queue until an agent answers or the caller is routed elsewhere.
func (s *Service) WaitInQueue(ctx context.Context, v *pbx.ScriptedCall, id string, _ pbx.Handoff) (outcome string) {
	t := &queueSession{s: s, v: v, info: v.Info(), options: routing.RouteOptionsOf(ctx), attempts: map[string]*pbx.Attempt{},
		results: make(chan offerResult, 8), closed: make(chan struct{})}
	t.waiter = &queueWaiter{callID: t.info.CallID, ready: make(chan struct{}, 1)}
	var err error
	if t.queue, err = s.cfg.Queues.Get(ctx, s.cfg.DB.Read(ctx), t.info.Org, id); err != nil {
		v.AddEntry("queue.missing", map[string]any{"queue_id": id})
		return routing.OutcomeOfError(err)
	}
	if err := v.SetStage(ctx, pbx.Place{Stage: "queue"}); err != nil {
		return routing.CallerGone
	}
	v.SetMissed("abandoned_in_queue")
	if err := t.enter(ctx); err != nil {
		return t.routeRefused(ctx, err)
	}
	t.waiter.setEntry(t.entry.ID)
	v.AddEntry("queue.entered", map[string]any{"queue_id": id, "position": t.entry.Position})
	return t.waitLoop(ctx)
}

// enter creates the queue entry. If the call still has an entry, as when the agent sends the caller to another queue,
// that entry ends first.
func (t *queueSession) enter(ctx context.Context) (err error) {
	c := queue.Caller{Org: t.info.Org, QueueID: t.queue.ID, CallID: t.info.CallID, From: t.info.From, Priority: t.options.Priority}
	if t.s.cfg.Contacts != nil {
		c.Contact = t.s.cfg.Contacts.LookupLocal(ctx, t.info.Org, t.info.From)
	}
	enter := func(ctx context.Context, tx db.Querier) error {
		t.entry, err = t.s.cfg.Queues.Enter(ctx, tx, c)
		return err
	}
	if err := t.s.cfg.DB.TxRelaxedContext(ctx, enter); !db.IsConflict(err) {
		return err
	}
	return t.s.cfg.DB.TxRelaxedContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := t.s.cfg.Queues.CallEnded(ctx, tx, t.info.Org, t.info.CallID, "transfer", true); err != nil {
			return err
		}
		return enter(ctx, tx)
	})
}

// routeRefused routes a caller after the queue refused the entry.
func (t *queueSession) routeRefused(ctx context.Context, err error) (outcome string) {
	switch {
	case errors.Is(err, queue.ErrFull):
		return t.overflow(ctx, routing.Overflow, "overflow")
	case errors.Is(err, queue.ErrClosed):
		return t.overflow(ctx, routing.Overflow, "after_hours")
	case errors.Is(err, queue.ErrNoAgents):
		return t.overflow(ctx, routing.NoResult, "no_agents")
	case ctx.Err() != nil:
		return routing.CallerGone
	}
	t.s.cfg.Log.Error("queue not entered", "call", t.info.CallID, "queue", t.queue.ID, "err", err)
	return routing.Failed
}

// waitLoop plays music and announcements, rings agents and handles keys until the wait ends.
func (t *queueSession) waitLoop(ctx context.Context) (outcome string) {
	t.maxWaitTimer = time.NewTimer(time.Hour)
	defer t.maxWaitTimer.Stop()
	if err := t.applyQueueSettings(ctx); err != nil {
		t.recordGone()
		return routing.CallerGone
	}
	t.s.dispatcher.add(t.info.Org, t.waiter)
	defer t.s.dispatcher.remove(t.info.Org, t.waiter)
	defer t.finish()
	for {
		var next func(context.Context) (string, bool)
		select {
		case <-ctx.Done():
			if t.v.Connected() { // the answer was not read any more; the end of the call completes the entry
				return routing.Answered
			}
			t.recordGone()
			return routing.CallerGone
		case <-t.waiter.ready:
			next = t.handleUpdate
		case r := <-t.results:
			next = func(ctx context.Context) (string, bool) { return t.handleResult(ctx, r) }
		case <-t.maxWaitTimer.C:
			next = t.checkDeadline
		case <-t.announcer.due():
			next = t.announce
		case <-t.announcer.finished:
			next = t.announcementDone
		case <-t.v.KeyPressed():
			next = t.handleKeys
		}
		if outcome, over := next(ctx); over {
			return outcome
		}
	}
}

// finish stops the announcement and waits for the goroutines of the session.
func (t *queueSession) finish() {
	t.announcer.stop()
	close(t.closed)
	t.watchers.Wait()
}

// applyQueueSettings applies the settings of the queue: at the start, when they change, and after a move to another
// queue.
func (t *queueSession) applyQueueSettings(ctx context.Context) error {
	t.whisper = nil
	if id := t.queue.WhisperAudioID; id != nil {
		clip, err := t.v.Clip(ctx, *id)
		if err != nil {
			t.s.cfg.Log.Warn("whisper not loaded", "queue", t.queue.ID, "err", err)
		}
		t.whisper = clip
	}
	music := t.v.Music()
	if id := t.queue.MusicAudioID; id != nil {
		if clip, err := t.v.Clip(ctx, *id); err == nil {
			music = clip
		} else {
			t.s.cfg.Log.Warn("music not loaded", "queue", t.queue.ID, "err", err)
		}
	}
	t.maxWaitTimer.Reset(time.Until(t.deadline()))
	t.scheduleFirst()
	return t.v.Loop(ctx, music)
}

// deadline returns when the longest wait of the caller ends.
func (t *queueSession) deadline() time.Time {
	most := seconds(t.queue.MaxWait)
	if t.options.MaxWait > 0 {
		most = min(most, t.options.MaxWait)
	}
	if o := t.queue.Overflow; o != nil && o.AfterSeconds != nil && !t.options.ReturnUnanswered {
		most = min(most, seconds(*o.AfterSeconds))
	}
	return t.entry.EnteredAt.Add(most)
}

// overflowsEarly reports whether the overflow applies before the queue's longest wait.
func (t *queueSession) overflowsEarly() bool {
	o := t.queue.Overflow
	return o != nil && o.AfterSeconds != nil && !t.options.ReturnUnanswered && *o.AfterSeconds < t.queue.MaxWait
}

// checkDeadline routes the caller onwards at the deadline. If agents are being rung at that time, it waits for their
// result.
func (t *queueSession) checkDeadline(ctx context.Context) (string, bool) {
	if left := time.Until(t.deadline()); left > 0 {
		t.maxWaitTimer.Reset(left)
		return "", false
	}
	if t.waitExpired = true; len(t.attempts) > 0 {
		return "", false
	}
	return t.leaveExpired(ctx)
}

func (t *queueSession) leaveExpired(ctx context.Context) (string, bool) {
	if t.overflowsEarly() {
		return t.leave(ctx, queue.Overflowed, "after_seconds", routing.Overflow, "overflow")
	}
	return t.leave(ctx, queue.TimedOut, "max_wait", routing.Timeout, "overflow")
}

// leave ends the queue entry and routes the caller onwards. If an agent has answered at the same moment, the caller
// stays.
func (t *queueSession) leave(ctx context.Context, status, reason, outcome, missed string) (string, bool) {
	err := t.s.cfg.DB.TxRelaxedContext(ctx, func(ctx context.Context, tx db.Querier) error {
		return t.s.cfg.Queues.Leave(ctx, tx, t.info.Org, t.entry.ID, status, reason)
	})
	if errors.Is(err, queue.ErrGone) {
		return "", false
	}
	if err != nil {
		return t.fail(ctx, "caller not routed on", err)
	}
	t.v.AddEntry("queue.left", map[string]any{"queue_id": t.queue.ID, "status": status, "reason": reason})
	return t.routeOn(ctx, outcome, missed), true
}

// fail ends a session after an error.
func (t *queueSession) fail(ctx context.Context, what string, err error) (string, bool) {
	if ctx.Err() != nil {
		return "", false
	}
	t.s.cfg.Log.Error(what, "call", t.info.CallID, "queue", t.queue.ID, "err", err)
	return t.routeOn(ctx, routing.Failed, "overflow"), true
}

// routeOn cancels all ringing and routes the caller onwards.
func (t *queueSession) routeOn(ctx context.Context, outcome, missed string) string {
	t.s.dispatcher.remove(t.info.Org, t.waiter)
	t.announcer.stop()
	t.cancelAll()
	return t.overflow(ctx, outcome, missed)
}

// overflow routes the caller to the queue's overflow destination. If the route options want an unanswered caller
// returned, it only returns the outcome.
func (t *queueSession) overflow(ctx context.Context, outcome, missed string) string {
	t.v.SetMissed(missed)
	if t.options.ReturnUnanswered || t.queue.Overflow == nil {
		return outcome
	}
	if t.entry.ID != "" && t.v.Loop(ctx, nil) != nil {
		return routing.CallerGone
	}
	t.v.AddEntry("queue.overflowed", map[string]any{"queue_id": t.queue.ID, "to": t.queue.Overflow.To})
	t.v.SetTransferredTo(ctx, t.queue.Overflow.To)
	if led := t.s.cfg.Router.RouteTo(ctx, t.v, t.queue.Overflow.To); routing.IsFinal(led) {
		return led
	}
	return outcome
}

func (t *queueSession) cancelAll() {
	for _, a := range t.attempts {
		a.Cancel()
	}
	clear(t.attempts)
}

// recordGone ends the entry of a caller who hung up or is routed elsewhere. If the call has ended, the transaction
// that ends the call also ends the entry.
func (t *queueSession) recordGone() {
	ctx, cancel := context.WithTimeout(context.Background(), finalWriteTimeout)
	defer cancel()
	status, reason := queue.Abandoned, "caller_hangup"
	if !t.v.HungUp() {
		sleepContext(ctx, time.Second) // give that transaction time, if the call has ended
		status, reason = queue.Exited, "transfer"
	}
	err := t.s.cfg.DB.TxRelaxedContext(ctx, func(ctx context.Context, tx db.Querier) error {
		err := t.s.cfg.Queues.Leave(ctx, tx, t.info.Org, t.entry.ID, status, reason)
		if !errors.Is(err, queue.ErrGone) {
			return err
		}
		for offer := range t.attempts {
			if _, err := t.s.cfg.Queues.RevertAnswer(ctx, tx, t.info.Org, offer, queue.OfferCanceled, false); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.s.cfg.Log.Error("queue entry of a gone caller not ended", "call", t.info.CallID, "err", err)
	}
}

// finalWriteTimeout limits the last database writes of a session.
const finalWriteTimeout = 20 * time.Second
