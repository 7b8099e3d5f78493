package pbx

import (
	"context"

	"soniq/op"
	"soniq/sip"
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
	c.handOn(ctx, r, t.from, t.kept)
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
