package pbx

import (
	"context"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// Transfers to script targets: queues, flows, mailboxes. They complete at once, without a consultation.

// completeToScript starts the script for the transferee and disconnects the transferor.
func (t *transfer) toScript(ctx context.Context, r reach) {
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
	t.over("completed", "", 0)
	if t.refer != nil {
		t.refer.Notify(200, "OK")
	}
	c.transferredTo = t.state.To
	c.tell(ctx, t)
	by := &t.from.caller
	c.handOn(ctx, r, t.from, t.kept)
	c.visit.unshown, c.visit.by = unshownAt(t.unshown, r.lead.To), by
	t.reply.ok()
}

// handToScript starts a script for the kept leg and hangs up the other one.
func (c *liveCall) handOn(ctx context.Context, r reach, from, kept *leg) {
	if c.a == from {
		c.a = nil
	} else {
		c.b = nil
	}
	c.hangUp(from, sip.Reason{Q850: normalClearing})
	c.unrecord(kept)
	kept.apart = false
	c.visitBy(ctx, r, kept)
	c.resume(kept)
	c.countHold()
	c.wire()
}

// removeFromRecording removes the channel of the leg that left.
func (c *liveCall) unrecord(kept *leg) {
	r := c.recording
	if r == nil || r.recorder == nil {
		return
	}
	gone := r.recorder.SetLeft
	if kept == c.a {
		gone = r.recorder.SetRight
	}
	if err := gone(nil); err != nil {
		c.sw.Log.Error("recording channel of a leg that left not removed", "call", c.id, "org", c.new.Org, "err", err)
	}
}

// toVoicemail connects the transferee with the mailbox of the user who did not answer. It returns false if there is
// none.
func (c *liveCall) toMailbox(ctx context.Context, t *transfer) bool {
	r, refusal, err := c.sw.ledBy(reach{}, Lead{Org: c.new.Org, To: "voicemail:" + t.user.UserID})
	if refusal != nil || err != nil || !t.kept.up() {
		return false
	}
	c.handOn(ctx, r, t.from, t.kept)
	c.change(ctx)
	return true
}

// transferScripted transfers a caller in a queue, menu or mailbox. It first checks that the target exists and is
// allowed. There is no party to return to, so it then works like any new caller of the target.
func (c *liveCall) leadElsewhere(v *Visit, x call.Transfer, done reply) {
	if x.Warm {
		done.fail(op.Invalid(op.Field("mode", "not_possible", "the caller talks to nobody who could ask first; use blind")))
		return
	}
	from := c.caller
	from.Org, from.Program, from.ShowNumber = v.info.Org, true, x.From
	c.aside(routeTimeout, func(ctx context.Context) func(context.Context) {
		r, refusal, err := c.sw.reach(ctx, from, x.To)
		r.close()
		return func(ctx context.Context) {
			switch {
			case err != nil:
				done.fail(err)
			case refusal != nil:
				done.fail(refusal.problem())
			case c.visit != v || c.done:
				done.state(c, "the caller is led elsewhere, or talks to somebody, since")
			default:
				c.ledAnew(ctx, v, r, x)
				done.ok()
			}
		}
	})
}

// restartScript starts another script and cancels the attempts of the first one.
func (c *liveCall) ledAnew(ctx context.Context, v *Visit, to reach, x call.Transfer) {
	for _, a := range append([]*Attempt(nil), v.attempts...) {
		c.giveUpAttempt(a)
	}
	t := &transfer{c: c, kept: v.leg, from: v.leg, state: call.TransferState{Mode: "blind", To: x.To, StartedAt: c.sw.Now()}}
	c.transfer, c.transferredTo = t, x.To
	t.over("completed", "", 0)
	to = c.scriptTo(to, x)
	c.visitBy(ctx, to, v.leg)
	c.visit.unshown = unshownAt(x.Unshown, to.lead.To)
	c.tell(ctx, t)
	c.wire()
}

// withScript adds a script to the destination: the user's rules for a user, otherwise a script that only rings.
func (c *liveCall) scriptTo(to reach, x call.Transfer) reach {
	if to.script == nil && to.user != nil {
		to.lead = Lead{Org: c.new.Org, To: "user:" + to.user.UserID}
		to.script = c.sw.script(to.lead)
	}
	if to.script == nil {
		to.lead = Lead{Org: c.new.Org, To: x.To}
		to.script = ringOnly(x)
	}
	return to
}

// ringScript returns a script that rings a destination and ends the call if it does not answer.
func ringOnly(x call.Transfer) Script {
	return func(ctx context.Context, v *Visit) {
		a, err := v.Ring(ctx, x.To, Ringing{Timeout: x.Timeout})
		if err != nil {
			return
		}
		select {
		case r := <-a.Done():
			switch r.What {
			case "answered":
			case "busy", "rejected":
				_ = v.HangUp(ctx, r.What)
			default:
				_ = v.HangUp(ctx, "no_answer")
			}
		case <-ctx.Done():
		}
	}
}
