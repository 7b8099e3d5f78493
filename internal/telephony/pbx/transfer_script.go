package pbx

import (
	"context"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
)

// Transfers to script targets: queues, flows, mailboxes. They complete at once, without a consultation.

// completeToScript starts the script for the transferee and disconnects the transferor.
func (t *transfer) completeToScript(ctx context.Context, r resolvedDestination) {
	c := t.c
	switch {
	case t.state.Mode == "warm":
		c.transfer = nil
		t.state.Status = "failed"
		t.reply.fail(op.Invalid(op.Field("mode", "not_possible", "only a person can be asked first; use blind")))
		return
	case len(c.extra) > 0:
		c.transfer = nil
		t.state.Status = "failed"
		t.reply.state(c, "others are in the call")
		return
	}
	t.finish("completed", "", 0)
	if t.refer != nil {
		t.refer.Notify(200, "OK")
	}
	c.transferredTo = t.state.To
	c.writeTransfer(ctx, t)
	by := &t.transferor.caller
	c.handToScript(ctx, r, t.transferor, t.transferee)
	c.scripted.hideCaller, c.scripted.transferredBy = hideCallerAt(t.hideCaller, r.handoff.To), by
	t.reply.ok()
}

// handToScript starts a script for the kept leg and hangs up the other one.
func (c *liveCall) handToScript(ctx context.Context, r resolvedDestination, from, kept *leg) {
	if c.a == from {
		c.a = nil
	} else {
		c.b = nil
	}
	c.hangUp(from, sip.Reason{Q850: cause.NormalClearing})
	c.removeFromRecording(kept)
	kept.isolated = false
	c.runScript(ctx, r, kept)
	c.unholdByOffer(kept)
	c.countHold()
	c.wireMedia()
}

// removeFromRecording removes the channel of the leg that left.
func (c *liveCall) removeFromRecording(kept *leg) {
	r := c.recording
	if r == nil || r.recorder == nil {
		return
	}
	gone := r.recorder.SetLeft
	if kept == c.a {
		gone = r.recorder.SetRight
	}
	if err := gone(nil); err != nil {
		c.sw.cfg.Log.Error("recording channel of a leg that left not removed", "call", c.id, "org", c.new.Org, "err", err)
	}
}

// toVoicemail connects the transferee with the mailbox of the user who did not answer. It returns false if there is
// none.
func (c *liveCall) toVoicemail(ctx context.Context, t *transfer) bool {
	r, refusal, err := c.sw.routeToScript(resolvedDestination{}, Handoff{Org: c.new.Org, To: "voicemail:" + t.user.UserID})
	if refusal != nil || err != nil || !t.transferee.up() {
		return false
	}
	c.handToScript(ctx, r, t.transferor, t.transferee)
	c.change(ctx)
	return true
}

// transferScripted transfers a caller in a queue, menu or mailbox. It first checks that the target exists and is
// allowed. There is no party to return to, so it then works like any new caller of the target.
func (c *liveCall) transferScripted(v *ScriptedCall, x call.Transfer, done commandReply) {
	if x.Warm {
		done.fail(op.Invalid(op.Field("mode", "not_possible", "the caller talks to nobody who could ask first; use blind")))
		return
	}
	from := c.caller
	from.Org, from.Program, from.ShowNumber = v.info.Org, true, x.From
	c.runAsync(routeTimeout, func(ctx context.Context) func(context.Context) {
		r, refusal, err := c.sw.resolveDestination(ctx, from, x.To)
		r.release()
		return func(ctx context.Context) {
			switch {
			case err != nil:
				done.fail(err)
			case refusal != nil:
				done.fail(refusal.problem())
			case c.scripted != v || c.done:
				done.state(c, "the caller is led elsewhere, or talks to somebody, since")
			default:
				c.restartScript(ctx, v, r, x)
				done.ok()
			}
		}
	})
}

// restartScript starts another script and cancels the attempts of the first one.
func (c *liveCall) restartScript(ctx context.Context, v *ScriptedCall, to resolvedDestination, x call.Transfer) {
	for _, a := range append([]*Attempt(nil), v.attempts...) {
		c.cancelAttempt(a)
	}
	t := &transfer{c: c, transferee: v.leg, transferor: v.leg, state: call.TransferState{Mode: "blind", To: x.To, StartedAt: c.sw.now()}}
	c.transfer, c.transferredTo = t, x.To
	t.finish("completed", "", 0)
	to = c.withScript(to, x)
	c.runScript(ctx, to, v.leg)
	c.scripted.hideCaller = hideCallerAt(x.NoScreenPop, to.handoff.To)
	c.writeTransfer(ctx, t)
	c.wireMedia()
}

// withScript adds a script to the destination: the user's rules for a user, otherwise a script that only rings.
func (c *liveCall) withScript(to resolvedDestination, x call.Transfer) resolvedDestination {
	if to.script == nil && to.user != nil {
		to.handoff = Handoff{Org: c.new.Org, To: "user:" + to.user.UserID}
		to.script = c.sw.scriptFor(to.handoff)
	}
	if to.script == nil {
		to.handoff = Handoff{Org: c.new.Org, To: x.To}
		to.script = ringScript(x)
	}
	return to
}

// ringScript returns a script that rings a destination and ends the call if it does not answer.
func ringScript(x call.Transfer) Script {
	return func(ctx context.Context, v *ScriptedCall) {
		a, err := v.Ring(ctx, x.To, RingOptions{Timeout: x.Timeout})
		if err != nil {
			return
		}
		select {
		case r := <-a.Done():
			switch r.Status {
			case "answered":
			case "busy", "rejected":
				_ = v.HangUp(ctx, r.Status)
			default:
				_ = v.HangUp(ctx, "no_answer")
			}
		case <-ctx.Done():
		}
	}
}
