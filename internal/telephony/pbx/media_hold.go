package pbx

import (
	"context"
	"errors"
	"time"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/commandwait"
)

// callHold is the hold of a call.
type callHold struct {
	heldSince time.Time
	hold      time.Duration // without the current hold
	holdMusic *clip.Clip
}

// holdFar puts the far side on hold by re-INVITE (RFC 3261 §14). It hears music on hold afterwards.
func (c *liveCall) holdFar(ctx context.Context, x call.Hold, done commandReply) {
	l := c.far()
	switch {
	case !c.connectedNow():
		done.state(c, "the call is not connected")
	case l.heldAPI:
		done.ok()
	case c.transfer.running():
		done.state(c, "a transfer is under way")
	default:
		c.withHoldMusic(ctx, x.AudioID, done, func() { c.setHold(l, true, done) })
	}
}

// unholdFar takes the far side off hold.
func (c *liveCall) unholdFar(_ context.Context, done commandReply) {
	for _, l := range c.parties() {
		if l.heldAPI {
			c.setHold(l, false, done)
			return
		}
	}
	if !c.connectedNow() {
		done.state(c, "the call is not connected")
		return
	}
	done.ok()
}

// setHold offers the leg the new direction. The state changes only after the leg agreed.
func (c *liveCall) setHold(l *leg, held bool, done commandReply) {
	l.whenNoOfferPending(func() {
		if !done.isAwaited() {
			done.fail(commandwait.TimeoutError())
			return
		}
		before := l.session.LocalMedia()
		m := before
		m.Direction = sdp.SendRecv
		if held {
			m.Direction = sdp.SendOnly
		}
		c.offerMediaWithin(reinviteTimeout, done.expired(), l, m, func(ctx context.Context, _ sdp.Description, err error) {
			switch {
			case err != nil:
				c.addEntry("call.hold_refused", l, detail{"err": err.Error()})
				done.fail(holdError(err))
			case !done.decide(): // it agreed after the command had timed out
				c.restoreMedia(l, before)
			default:
				c.holdAgreed(ctx, l, held, done)
			}
		})
	})
}

// holdError returns the API error for a hold or unhold that failed.
func holdError(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return commandwait.TimeoutError()
	case errors.Is(err, sip.ErrOfferPending):
		return op.Fail("carrier_error", "the other side has not answered yet what it was asked before")
	}
	return op.Fail("carrier_error", "the other side refused: "+err.Error())
}

func (c *liveCall) holdAgreed(ctx context.Context, l *leg, held bool, done commandReply) {
	l.heldAPI, l.dirty = held, true
	l.apply()
	c.countHold()
	c.wireMedia()
	c.change(ctx, c.holdEvent(l, held, "api"))
	done.ok()
}

// music returns the music on hold.
func (c *liveCall) music() *clip.Clip {
	if c.holdMusic != nil {
		return c.holdMusic
	}
	return clip.HoldMusic()
}

// withHoldMusic loads the music and calls next.
func (c *liveCall) withHoldMusic(_ context.Context, audio string, done commandReply, next func()) {
	if audio == "" {
		next()
		return
	}
	c.withClip(audio, done, func(_ context.Context, clip *clip.Clip) {
		c.holdMusic = clip
		next()
	})
}

// withClip loads an audio file of the organisation and calls next.
func (c *liveCall) withClip(audio string, done commandReply, next func(ctx context.Context, clip *clip.Clip)) {
	org := c.new.Org
	c.runAsync(loadTimeout, func(ctx context.Context) func(context.Context) {
		clip, err := c.sw.clip(ctx, org, audio)
		return func(ctx context.Context) {
			if err != nil {
				done.fail(err)
				return
			}
			next(ctx, clip)
		}
	})
}

// setMuted mutes a leg: the other parties do not hear it.
func (c *liveCall) setMuted(ctx context.Context, x call.Mute, done commandReply) {
	l := c.near()
	if x.LegID != "" {
		l = c.legOf(x.LegID)
	}
	if l == nil {
		done.fail(op.Invalid(op.Field("leg_id", "not_found", "the call has no such leg in progress")))
		return
	}
	if !l.up() {
		done.state(c, "the call is not connected")
		return
	}
	if l.muted != x.On {
		l.muted = x.On
		l.stream.SetMuted(x.On)
		c.wireMedia()
		c.addEntry("leg.muted", l, detail{"muted": x.On})
		c.change(ctx)
	}
	done.ok()
}
