package pbx

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/pbx/keybuffer"
)

// callScripts has the scripts of a call.
type callScripts struct {
	scripted    *ScriptedCall   // set while a script controls the caller
	allScripted []*ScriptedCall // all scripted calls, including ended ones
}

// ErrGone is returned after the caller has hung up, was connected, or is controlled by another script.
var ErrGone = errors.New("the caller is gone")

// ScriptedCall is a call that a script controls (an IVR session). Its methods are for the script's goroutine and run
// in the call's goroutine. They return ErrGone after the caller has hung up, was connected, or moved to another
// script.
type ScriptedCall struct {
	c                             *liveCall
	leg                           *leg
	info                          Info
	ctx                           context.Context
	cancel                        context.CancelFunc
	keys                          keybuffer.Buffer
	connected                     atomic.Bool
	hungup                        atomic.Bool
	recordingMessage, leftMessage atomic.Bool   // a message recording was started; a message was stored
	done                          chan struct{} // closed when the script has returned
	handoff                       Handoff

	// owned by the call's goroutine
	place         Place
	masked        bool
	missed        string
	loop          *clip.Clip // clip that the caller hears in a loop
	playing       bool       // a single clip plays instead of loop
	attempts      []*Attempt
	hideCaller    bool    // the rung user gets no screen pop with the caller
	transferredBy *Caller // user who transferred the call; may be nil
	returns       bool    // the caller comes back to the script when the party that answers has hung up
	party         *leg    // the party that the caller talks to and comes back from; nil: none
	returned      chan struct{}
}

// Info describes a call at the start of its script.
type Info struct {
	Org, CallID, Direction string
	From, FromName, To     string
	NumberID               string // dialled number; empty if it is not ours
	UserID                 string // calling user; empty for external callers
	Country                string // country of the organisation, ISO 3166
	Sandbox                bool
	StartedAt              time.Time
	Diversions             int // diversions before the call arrived here (Diversion header, RFC 5806)
}

// Place is the stage of a scripted call.
type Place struct {
	Stage string // ivr, queue, agent, voicemail or ai_agent
}

func newScriptedCall(ctx context.Context, c *liveCall, l *leg) *ScriptedCall {
	v := &ScriptedCall{c: c, leg: l, done: make(chan struct{}), returned: make(chan struct{}, 1), place: Place{Stage: "routing"}}
	v.ctx, v.cancel = context.WithCancel(context.WithoutCancel(ctx))
	v.info = Info{Org: c.new.Org, CallID: c.id, Direction: string(c.new.Direction), From: c.new.From, FromName: c.new.FromName,
		To:       c.new.To,
		NumberID: c.new.NumberID, UserID: l.caller.UserID, Country: c.policy.Country, Sandbox: c.new.Sandbox, StartedAt: c.started}
	if l.in != nil {
		v.info.Diversions = len(l.in.Diversion)
	}
	if l != c.a {
		v.info.From, v.info.FromName = l.number, l.caller.Name
	}
	return v
}

// Info returns the description of the call.
func (v *ScriptedCall) Info() Info { return v.info }

// Connected reports whether the caller is or was connected to a party that this script rang, and has not come back since.
func (v *ScriptedCall) Connected() bool { return v.connected.Load() }

// HungUp reports whether the caller has hung up.
func (v *ScriptedCall) HungUp() bool { return v.hungup.Load() }

// ReturnAfterAnswer sets whether the caller comes back to the script when the next party that answers has hung up. Without it the call
// ends then.
func (v *ScriptedCall) ReturnAfterAnswer(on bool) {
	_ = v.do(v.ctx, func(context.Context) error { v.returns = on; return nil })
}

// AwaitReturn waits until a connected caller has come back. It returns ErrGone if the call ends, or if the party sent the caller elsewhere.
func (v *ScriptedCall) AwaitReturn(ctx context.Context) error {
	for v.Connected() {
		select {
		case <-v.returned:
		case <-ctx.Done():
			return ErrGone
		case <-v.ctx.Done():
			return ErrGone
		}
	}
	return nil
}

// AddEntry adds an entry to the call's timeline.
func (v *ScriptedCall) AddEntry(kind string, d map[string]any) { v.c.addEntry(kind, v.leg, d) }

// SetStage writes the stage of the caller into the call's row.
func (v *ScriptedCall) SetStage(ctx context.Context, p Place) error {
	return v.do(ctx, func(ctx context.Context) error {
		v.place = p
		v.c.addEntry("stage."+p.Stage, v.leg, nil)
		v.c.change(ctx)
		return nil
	})
}

// SetMissed sets the reason of the missed call if the call ends before the caller is connected.
func (v *ScriptedCall) SetMissed(reason string) {
	_ = v.do(v.ctx, func(context.Context) error { v.missed = reason; return nil })
}

// SetTransferredTo sets the transfer target in the call's record.
func (v *ScriptedCall) SetTransferredTo(ctx context.Context, to string) {
	_ = v.do(ctx, func(context.Context) error { v.c.transferredTo = to; return nil })
}

// SetRecording enables or disables recording of the following conversation, overriding the organisation's setting.
func (v *ScriptedCall) SetRecording(on bool) {
	_ = v.do(v.ctx, func(context.Context) error { v.c.policy.Record = on && !v.c.policy.Never; return nil })
}

// HangUp ends the call. The reason is the record's end_reason; empty: no_answer.
func (v *ScriptedCall) HangUp(ctx context.Context, reason string) error {
	if reason == "" {
		reason = "no_answer"
	}
	return v.do(ctx, func(context.Context) error { v.c.endScripted(v, reason); return nil })
}

// do runs f in the call's goroutine if the script still controls the call. If it returns ErrGone, f did not run and
// will not.
func (v *ScriptedCall) do(ctx context.Context, f func(ctx context.Context) error) error {
	if v.ctx.Err() != nil {
		return ErrGone
	}
	answer := make(chan error, 1)
	gone := func() { answer <- ErrGone }
	var taken atomic.Bool // by the call, or by the caller of do whose ctx ended
	pushed := v.c.inbox.Push(message{ifEnded: gone, run: func(ctx context.Context) {
		if v.c.scripted != v || v.c.done || !taken.CompareAndSwap(false, true) {
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
		return <-answer // f is running
	}
}

// loopClip returns the clip that the caller hears in a loop while not connected.
func (v *ScriptedCall) loopClip() *clip.Clip {
	if v.playing {
		return nil
	}
	for _, a := range v.attempts {
		if !a.options.Music {
			return v.c.ringback()
		}
	}
	return v.loop
}

// endScripts cancels the scripts of an ended call.
func (c *liveCall) endScripts() {
	for _, v := range c.allScripted {
		v.hungup.Store(c.outcome.HangupBy == c.sideOf(v.leg))
		v.cancel()
	}
}

// cancelReason returns the Reason for the phones of an attempt: a party of another attempt has answered, or none.
func (a *Attempt) cancelReason() string {
	if slices.ContainsFunc(a.v.attempts, func(other *Attempt) bool { return other != a && other.leg.up() }) {
		return sip.CompletedElsewhere
	}
	return ""
}
