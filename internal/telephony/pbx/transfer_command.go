package pbx

import (
	"context"
	"slices"

	"soniq/internal/telephony/call"
)

// completeByCommand completes a consultation.
func (c *liveCall) completeByCommand(ctx context.Context, x call.CompleteTransfer, done commandReply) {
	t := c.transfer
	switch {
	case t.running() && t.state.Status == "consulting":
		c.complete(ctx, x.Conference)
		done.ok()
	case t.consulted() && slices.Contains(c.extra, t.target) == x.Conference: // already in this state
		done.ok()
	default:
		done.state(c, "no consultation is under way")
	}
}

// consulted reports whether the transfer was completed after a consultation.
func (t *transfer) consulted() bool {
	return t != nil && t.state.Status == "completed" && t.state.Mode == "warm" && t.target != nil
}

// cancelByCommand drops the target and returns to the transferee.
func (c *liveCall) cancelByCommand(ctx context.Context, done commandReply) {
	t := c.transfer
	switch {
	case t != nil && t.state.Status == "canceled": // already in this state
		done.ok()
		return
	case !t.running():
		done.state(c, "no transfer is under way")
		return
	case !t.transferor.up():
		done.state(c, "there is nobody to go back to")
		return
	}
	c.giveUp(ctx, t, "canceled")
	done.ok()
}
