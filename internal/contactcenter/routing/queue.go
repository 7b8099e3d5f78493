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

// This file is how a caller enters a queue, and what moves them on.

// A stay is a caller who waits in a queue, and is led by one goroutine.
type stay struct {
	s    *Service
	v    *pbx.Visit
	i    pbx.Info
	wish Wish
	w    *waiter

	e       queue.Entry
	k       queue.Queue
	whisper *media.Clip
	rung    map[string]*pbx.Attempt // by offer
	results chan rung
	due     bool // the caller has waited as long as they may
	limit   *time.Timer
	voice   voice

	over  chan struct{} // closed when the stay is
	aside sync.WaitGroup
}

// A rung is what came of an offer.
type rung struct {
	offer string
	pbx.Result
}

// wait leads a caller through a queue, until somebody answers or they go on elsewhere.
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

// enter gives the caller a place. A call that still stands in a queue, as when the agent sends the caller on, leaves it first.
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

// refused leads a caller on whom the queue does not take.
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

// lead keeps the caller company while they wait.
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

// finish waits for what the stay has begun.
func (t *stay) finish() {
	t.voice.stop()
	close(t.over)
	t.aside.Wait()
}

// settle makes the caller's stay follow the settings of the queue: at its beginning, when they are changed, and in another queue.
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

// until is when the caller has waited as long as they may.
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

// early reports whether the caller goes to the overflow before the longest time they may wait.
func (t *stay) early() bool {
	o := t.k.Overflow
	return o != nil && o.AfterSeconds != nil && !t.wish.Back && *o.AfterSeconds < t.k.MaxWait
}

// waitedEnough leads the caller on, unless somebody is being rung for them: then it waits for what comes of that.
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

// leave takes the caller out of line and leads them on. Where somebody has answered at this very moment the caller stays.
func (t *stay) leave(ctx context.Context, status, reason, outcome, missed string) (string, bool) {
	err := t.s.DB.SwiftContext(ctx, func(ctx context.Context, tx db.Querier) error {
		return t.s.Queues.Leave(ctx, tx, t.i.Org, t.e.ID, status, reason)
	})
	if errors.Is(err, queue.ErrGone) {
		return "", false
	}
	if err != nil {
		return t.failed(ctx, "caller not led on", err)
	}
	t.v.Step("queue_left", map[string]any{"queue_id": t.k.ID, "status": status, "reason": reason})
	return t.on(ctx, outcome, missed), true
}

// failed ends a stay that cannot be kept up.
func (t *stay) failed(ctx context.Context, what string, err error) (string, bool) {
	if ctx.Err() != nil {
		return "", false
	}
	t.s.Log.Error(what, "call", t.i.CallID, "queue", t.k.ID, "err", err)
	return t.on(ctx, Failed, "overflow"), true
}

// on leads the caller on, with nobody rung for them any more.
func (t *stay) on(ctx context.Context, outcome, missed string) string {
	t.s.distributor.remove(t.i.Org, t.w)
	t.voice.stop()
	t.cancelAll()
	return t.overflow(ctx, outcome, missed)
}

// overflow leads the caller to where the queue sends those who cannot stay. Who led them here and wants them back gets them.
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

// gone ends the stay of a caller who hung up, or is led elsewhere. What follows from the end of a call is written down with it.
func (t *stay) gone() {
	ctx, cancel := context.WithTimeout(context.Background(), lastWrites)
	defer cancel()
	status, reason := queue.Abandoned, "caller_hangup"
	if !t.v.Hungup() {
		rest(ctx, time.Second) // the end of the call, where it has ended
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
		t.s.Log.Error("caller who left not written down", "call", t.i.CallID, "err", err)
	}
}

// lastWrites bounds writing down that a caller has left.
const lastWrites = 20 * time.Second

// ownNumber is the number of the organisation that a caller dialled, to be shown when they are called back; "" where they dialled none.
func ownNumber(i pbx.Info) string {
	if i.NumberID == "" {
		return ""
	}
	return i.To
}

// callable is the number at which a caller can be called back; "" where there is none.
func callable(i pbx.Info) string {
	if i.From == call.Anonymous || slices.Contains([]string{"", "anonymous"}, i.From) {
		return ""
	}
	return i.From
}
