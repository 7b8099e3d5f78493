package pbx

import (
	"context"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// This file is transfers to where a script leads: queues, flows, mailboxes. Nobody is asked there first: they are done at once.

// toScript leads the kept side on, and lets the one who transferred go.
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

// handOn has the kept side led by a script, and hangs the other up.
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

// unrecord takes who left out of the recording.
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
		c.sw.Log.Error("recording keeps a side that left", "call", c.id, "org", c.new.Org, "err", err)
	}
}

// toMailbox leaves the kept side to the mailbox of who did not answer; false where there is none.
func (c *liveCall) toMailbox(ctx context.Context, t *transfer) bool {
	r, refusal, err := c.sw.ledBy(reach{}, Lead{Org: c.new.Org, To: "voicemail:" + t.user.UserID})
	if refusal != nil || err != nil || !t.kept.up() {
		return false
	}
	c.handOn(ctx, r, t.from, t.kept)
	c.change(ctx)
	return true
}

// leadElsewhere has a caller led to somewhere else who waits in a queue, or is in a menu or at a mailbox. Whether there is such a place, and
// they may be led there, is found out first; the rest is as with any caller who is led there: nobody is left to return to.
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

// ledAnew begins another visit; who rings for the first is given up.
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

// scriptTo is who leads a caller there: to a user as they want it, and to what nobody leads to by ringing it.
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

// ringOnly rings somebody for a caller, and ends the call where they do not answer.
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
