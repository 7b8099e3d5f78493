package pbx

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/media"
)

// ErrGone says that the caller has hung up, or is led by somebody else.
var ErrGone = errors.New("the caller is gone")

// A Visit is a caller who is led by a script. Its methods are for the goroutine of the script, and are carried out by that of the
// call; they return ErrGone once the caller has hung up, talks to somebody, or is led elsewhere.
type Visit struct {
	c             *liveCall
	leg           *leg
	info          Info
	ctx           context.Context
	cancel        context.CancelFunc
	keys          keys
	talks         atomic.Bool
	hungup        atomic.Bool
	writing, left atomic.Bool   // a message was begun; one was kept
	gone          chan struct{} // closed when the script is over
	lead          Lead

	// of the call's goroutine
	place    Place
	masked   bool
	missed   string
	loop     *media.Clip // what the caller hears over and over
	playing  bool        // something once, in place of that
	attempts []*Attempt
	unshown  bool    // a user who is rung is not told who calls
	by       *Caller // the user who handed the call over
}

// Info is what is known of a call when a visit begins.
type Info struct {
	Org, CallID, Direction string
	From, FromName, To     string
	NumberID               string // of the number dialled; "" where it is not one
	UserID                 string // of the caller, where a user of ours calls
	Country                string // of the organisation, ISO 3166
	Sandbox                bool
	StartedAt              time.Time
	Diversions             int // how often others had led the call elsewhere before it came in
}

// Place is where in the organisation a caller is.
type Place struct {
	Stage string // ivr, queue, agent, voicemail or ai_agent
}

func newVisit(ctx context.Context, c *liveCall, l *leg) *Visit {
	v := &Visit{c: c, leg: l, keys: keys{pressed: make(chan struct{}, 1)}, gone: make(chan struct{}), place: Place{Stage: "routing"}}
	v.ctx, v.cancel = context.WithCancel(context.WithoutCancel(ctx))
	v.info = Info{Org: c.new.Org, CallID: c.id, Direction: string(c.new.Direction), From: c.new.From, FromName: c.new.FromName, To: c.new.To,
		NumberID: c.new.NumberID, UserID: l.caller.UserID, Country: c.policy.Country, Sandbox: c.new.Sandbox, StartedAt: c.started}
	if l.in != nil {
		v.info.Diversions = len(l.in.Diversion)
	}
	if l != c.a {
		v.info.From, v.info.FromName = l.number, l.caller.Name
	}
	return v
}

// Info is what is known of the call.
func (v *Visit) Info() Info { return v.info }

// Connected reports whether the caller talks, or has talked, to somebody this visit found.
func (v *Visit) Connected() bool { return v.talks.Load() }

// Hungup reports whether the caller has hung up.
func (v *Visit) Hungup() bool { return v.hungup.Load() }

// Step notes in the call's timeline what happened.
func (v *Visit) Step(kind string, d map[string]any) { v.c.step(kind, v.leg, d) }

// Enter says where the caller is now, in the call's row.
func (v *Visit) Enter(ctx context.Context, p Place) error {
	return v.do(ctx, func(ctx context.Context) error {
		v.place = p
		v.c.step("stage."+p.Stage, v.leg, nil)
		v.c.change(ctx)
		return nil
	})
}

// Missed says why the call is a missed one, should it end before the caller talks to anybody.
func (v *Visit) Missed(reason string) {
	_ = v.do(v.ctx, func(context.Context) error { v.missed = reason; return nil })
}

// Transferred notes where the caller went, in the call's record.
func (v *Visit) Transferred(ctx context.Context, to string) {
	_ = v.do(ctx, func(context.Context) error { v.c.transferredTo = to; return nil })
}

// SetRecording says whether the conversation that follows is recorded, whatever the organisation does with others.
func (v *Visit) SetRecording(on bool) {
	_ = v.do(v.ctx, func(context.Context) error { v.c.policy.Record = on && !v.c.policy.Never; return nil })
}

// HangUp ends the call; the reason is the record's end_reason, "" for no_answer.
func (v *Visit) HangUp(ctx context.Context, reason string) error {
	if reason == "" {
		reason = "no_answer"
	}
	return v.do(ctx, func(context.Context) error { v.c.dismiss(v, reason); return nil })
}

// do carries something out in the call's goroutine, where the visit is still in force. With ErrGone it is not carried out, not later either.
func (v *Visit) do(ctx context.Context, f func(ctx context.Context) error) error {
	if v.ctx.Err() != nil {
		return ErrGone
	}
	answer := make(chan error, 1)
	gone := func() { answer <- ErrGone }
	var taken atomic.Bool // by the call, or by who does not wait for it any more
	pushed := v.c.inbox.push(message{late: gone, run: func(ctx context.Context) {
		if v.c.visit != v || v.c.done || !taken.CompareAndSwap(false, true) {
			gone()
			return
		}
		answer <- f(ctx)
	}})
	if !pushed {
		return ErrGone
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		if taken.CompareAndSwap(false, true) {
			return ErrGone
		}
		return <-answer // it is being carried out
	}
}

// hears is what the caller hears over and over while nobody talks to them.
func (v *Visit) hears() *media.Clip {
	if v.playing {
		return nil
	}
	for _, a := range v.attempts {
		if !a.o.Music {
			return v.c.ringback()
		}
	}
	return v.loop
}

// leaving tells the scripts of a call that it is over.
func (c *liveCall) leaving() {
	for _, v := range c.visits {
		v.hungup.Store(c.outcome.HangupBy == c.sideOf(v.leg))
		v.cancel()
	}
}
