package pbx

import (
	"context"

	"soniq/call"
)

// finish writes the call's record and frees what it held. What could not be written is left in the ledger.
func (c *liveCall) finish(ctx context.Context) {
	now := c.sw.Now()
	if !c.heldSince.IsZero() {
		c.hold += now.Sub(c.heldSince)
	}
	if c.answered.IsZero() {
		c.sw.stats.failed.Add(1)
	}
	c.giveBack()
	if c.began {
		c.writeEnd(ctx, call.Ended{New: c.plan.new, Outcome: c.outcome, At: now, AnsweredAt: c.answered, RingingAt: c.ringing,
			Hold: c.hold, Offered: c.offered, Recording: c.recordingID()})
		c.closeRecording(ctx)
	}
	c.release()
}

func (c *liveCall) recordingID() string {
	if c.recording == nil {
		return ""
	}
	return c.recording.new.ID
}

func (c *liveCall) writeEnd(ctx context.Context, e call.Ended) {
	c.ledger.write(ctx, "end", func(ctx context.Context) error { return c.sw.Records.End(ctx, e) })
	c.sw.Log.Debug("call ended", "call", c.id, "org", e.Org, "status", e.Status(), "reason", e.Reason)
}

// release closes the media once the recording has it all.
func (c *liveCall) release() {
	if c.streamA != nil {
		c.streamA.Close()
	}
	if c.streamB != nil {
		c.streamB.Close()
	}
}

// giveBack frees the call's places on trunks and in the organisation's limits: the other side is gone already.
func (c *liveCall) giveBack() {
	if c.b != nil {
		c.b.free()
	}
	for _, l := range c.ring {
		l.free()
	}
	if e := c.plan.exit; e != nil && e.Release != nil {
		e.Release()
	}
}
