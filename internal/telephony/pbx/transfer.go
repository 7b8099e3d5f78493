package pbx

import (
	"context"
	"time"

	"soniq/internal/platform/event"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
)

// callTransfer is the latest transfer of a call.
type callTransfer struct {
	transfer      *transfer
	transferredTo string          // target of the last completed transfer
	detachedLegs  []call.LegState // final rows of legs that moved to another call
}

// transfer connects the transferee with the target in place of the transferor (terms of RFC 5589).
type transfer struct {
	c                *liveCall
	state            call.TransferState
	onFail           string
	transferee       *leg // stays in the call, hears music or ringback meanwhile
	transferor       *leg // leaves the call
	target           *leg // the leg that answered; nil before
	dial             *forkedDial
	user             *Destination // user that is rung; nil for external numbers
	targetRang       bool
	refer            *sip.Refer   // set if a phone or a peer asked for it
	trunk            *TrunkIn     // set if a peer asked for it
	reply            commandReply // set if a command asked for it; sent on ringing or failure
	hideCaller       bool         // no screen pop with the caller at the target
	completeOnAnswer bool         // complete on answer, because the transferor has hung up
	// returning is set after a failed transfer, while the transferor is rung again.
	returning bool
}

// running reports whether the transfer is in progress.
func (t *transfer) running() bool {
	if t == nil {
		return false
	}
	switch t.state.Status {
	case "completed", "failed", "canceled":
		return false
	}
	return true
}

func (t *transfer) allowed() []string {
	if t.state.Status == "consulting" {
		return []string{"transfer/complete", "transfer/cancel"}
	}
	return []string{"transfer/cancel"}
}

// loopClipFor returns the clip that a side of a transfer hears while it waits.
func (t *transfer) loopClipFor(l *leg) *clip.Clip {
	switch {
	case !t.running() && !t.returning:
		return nil
	case l == t.transferee && t.state.Mode == "blind" && t.targetRang:
		return t.c.ringback()
	case l == t.transferee:
		return t.c.music()
	case l == t.transferor && t.target == nil:
		return t.c.ringback()
	}
	return nil
}

// startTransfer transfers the far side by command.
func (c *liveCall) startTransfer(x call.Transfer, done commandReply) {
	switch {
	case c.scripted != nil:
		c.transferScripted(c.scripted, x, done)
		return
	case !c.connectedNow():
		done.state(c, "the call is not connected")
		return
	case c.transfer.running():
		done.state(c, "a transfer is under way")
		return
	}
	t := &transfer{c: c, onFail: x.OnFail, transferee: c.far(), transferor: c.near(), reply: done, hideCaller: x.NoScreenPop,
		state: call.TransferState{Mode: "blind", To: x.To, Status: "started", StartedAt: c.sw.now()}}
	if x.Warm {
		t.state.Mode = "warm"
	}
	c.resolveTransfer(t, x.From, x.To, x.Timeout)
}

// resolveTransfer resolves the target and rings it.
func (c *liveCall) resolveTransfer(t *transfer, from, to string, timeout time.Duration) {
	c.transfer = t
	c.after(confirmTime, func(context.Context) {
		if c.transfer == t && t.running() {
			t.reply.ok()
		}
	})
	caller := t.transferor.caller
	if caller.Org == "" {
		caller = c.caller
	}
	caller.ShowNumber, caller.Program = from, t.refer == nil || t.trunk != nil
	c.runAsync(routeTimeout, func(ctx context.Context) func(context.Context) {
		r, refusal, err := t.find(ctx, caller, to)
		return func(ctx context.Context) {
			if c.transfer != t || !t.running() {
				r.release()
				return
			}
			t.resolved(ctx, r, refusal, err, timeout)
		}
	})
}

// find resolves the target of a transfer.
func (t *transfer) find(ctx context.Context, from Caller, to string) (resolvedDestination, *Refusal, error) {
	switch {
	case t.trunk != nil:
		return t.c.sw.resolveForPeer(ctx, *t.trunk, from, to)
	case t.state.Mode == "warm": // a consultation rings the user's phones whatever the user's rules say
		return t.c.sw.resolveForConsultation(ctx, from, to)
	}
	return t.c.sw.resolveDestination(ctx, from, to)
}

// confirmTime is the longest wait of a command for the first ring. Some phones ring late, or answer without ringing.
// After it the call's state has the result.
const confirmTime = 3500 * time.Millisecond

// routeTimeout limits the resolution of a destination.
const routeTimeout = 4 * time.Second

func (t *transfer) resolved(ctx context.Context, r resolvedDestination, refusal *Refusal, err error, timeout time.Duration) {
	if err == nil && refusal == nil {
		refusal = t.c.refuseDuplicate(r, t.transferor)
	}
	if err != nil || refusal != nil {
		r.release()
		t.c.transfer = nil
		t.refuse(refusal, err)
		return
	}
	c := t.c
	if r.script != nil {
		t.completeToScript(ctx, r)
		return
	}
	if timeout <= 0 {
		timeout = transferTimeout
	}
	t.user = r.user
	t.transferee.isolated, t.transferor.isolated = true, true
	c.writeTransfer(ctx, t)
	h := c.newDial("agent", r, t.transferee)
	h.awaitsLost = true
	if r.user == nil {
		h.role = "callee"
	}
	h.hideCaller, h.transferredBy = t.hideCaller, &t.transferor.caller
	h.onRing, h.onAnswer, h.onFail = t.ringing, t.answered, t.failed
	t.dial = h
	h.start(ctx, timeout)
	c.wireMedia()
}

// transferTimeout is the ring time of a transfer without a timeout of its own.
const transferTimeout = 25 * time.Second

// refuse reports that the target is not reachable. The call is unchanged.
func (t *transfer) refuse(refusal *Refusal, err error) {
	status := 503
	switch {
	case err != nil:
		t.reply.fail(err)
	default:
		status = refusal.Status
		t.reply.fail(refusal.problem())
	}
	t.state.Status = "failed"
	if t.refer != nil {
		t.refer.Notify(status, "")
	}
}

// writeTransfer writes the state of the transfer.
func (c *liveCall) writeTransfer(ctx context.Context, t *transfer) {
	s := t.state
	c.addEntry("transfer."+s.Status, t.target, detail{"to": s.To, "mode": s.Mode})
	c.change(ctx, event.CallTransfer{CallID: c.id, Mode: s.Mode, To: s.To, Status: s.Status, TargetLegID: s.TargetLegID,
		FailureReason: s.FailureReason, SIPStatus: s.SIPStatus, At: at(c.sw.now())})
}

func (t *transfer) ringing(l *leg, e sip.Provisional) {
	if t.refer != nil {
		t.refer.Notify(e.Status, "")
	}
	if t.targetRang {
		return
	}
	t.targetRang, t.state.Status = true, "ringing"
	t.state.TargetLegID = &l.id
	t.c.wireMedia()
	t.c.writeTransfer(context.Background(), t)
	t.reply.ok()
}

// answered handles the target's answer: a blind transfer is complete, a warm one becomes a consultation.
func (t *transfer) answered(ctx context.Context, l *leg, _ sdp.Description) {
	t.target, t.dial = l, nil
	t.state.TargetLegID = &l.id
	t.c.endSupervisionOf(ctx, l.caller.UserID)
	if t.state.Mode == "blind" || t.completeOnAnswer || !t.transferor.up() {
		t.c.complete(ctx, false)
		t.reply.ok()
		return
	}
	t.transferor.isolated = false
	t.state.Status = "consulting"
	t.c.wireMedia()
	t.c.writeTransfer(ctx, t)
	t.reply.ok()
}

// failed ends a transfer whose target did not answer, and continues as on_fail requires.
func (t *transfer) failed(ctx context.Context, e sip.Failed) {
	t.dial = nil
	t.finish("failed", cause.Outcome(e.Status, e.Q850).Reason, e.Status)
	if t.refer != nil {
		t.refer.Notify(e.Status, e.Reason)
	}
	t.c.writeTransfer(ctx, t)
	t.reply.ok()
	t.c.afterFailure(ctx, t)
}

// finish sets the final status of the transfer.
func (t *transfer) finish(status, reason string, sipStatus int) {
	now := t.c.sw.now()
	t.state.Status, t.state.FinishedAt, t.state.FailureReason = status, &now, optional(reason)
	if sipStatus != 0 {
		t.state.SIPStatus = &sipStatus
	}
	t.transferee.isolated, t.transferor.isolated = false, false
}

// afterFailure applies on_fail.
func (c *liveCall) afterFailure(ctx context.Context, t *transfer) {
	switch {
	case t.onFail == "hangup":
		c.hangUpAll(call.Outcome{Reason: "transfer", HangupBy: "system"}, cause.NormalClearing)
	case t.onFail == "voicemail" && t.user != nil && c.toVoicemail(ctx, t):
	case t.transferor.up():
		c.unholdByOffer(t.transferee)
		c.wireMedia()
		c.change(ctx)
	default:
		c.ringBack(ctx, t)
	}
}

// ringBack rings the transferor again after a failed transfer, if the transferor has hung up.
func (c *liveCall) ringBack(ctx context.Context, t *transfer) {
	user := t.transferor.caller
	nobody := func(context.Context, sip.Failed) {
		c.hangUpAll(call.Outcome{Reason: "transfer", HangupBy: "system"}, cause.NormalClearing)
	}
	if user.UserID == "" {
		nobody(ctx, sip.Failed{})
		return
	}
	t.transferee.isolated = true
	t.returning = true
	c.wireMedia()
	c.runAsync(routeTimeout, func(ctx context.Context) func(context.Context) {
		r, refusal, err := c.sw.resolveDestination(ctx, c.caller, "user:"+user.UserID)
		return func(ctx context.Context) {
			if err != nil || refusal != nil {
				r.release()
				nobody(ctx, sip.Failed{})
				return
			}
			h := c.newDial("agent", r, t.transferee)
			h.awaitsLost = true
			h.onAnswer = func(ctx context.Context, l *leg, _ sdp.Description) {
				t.target, t.returning = l, false
				c.connectTarget(ctx, t)
			}
			h.onFail = nobody
			h.start(ctx, transferTimeout)
		}
	})
}

// giveUp ends a transfer and reconnects the transferee with the transferor.
func (c *liveCall) giveUp(ctx context.Context, t *transfer, status string) {
	if t.dial != nil {
		t.dial.stop()
		t.dial = nil
	}
	c.hangUp(t.target, sip.Reason{Q850: cause.NormalClearing})
	t.target = nil
	t.finish(status, "", 0)
	c.unholdByOffer(t.transferee)
	c.wireMedia()
	c.writeTransfer(ctx, t)
}

// complete connects transferee and target. The transferor leaves, or stays in a conference.
func (c *liveCall) complete(ctx context.Context, conference bool) {
	t := c.transfer
	t.finish("completed", "", 0)
	if t.refer != nil {
		t.refer.Notify(200, "OK")
	}
	c.transferredTo = t.target.number
	c.writeTransfer(ctx, t)
	if conference {
		c.extra = append(c.extra, t.target)
		c.unholdByOffer(t.transferee)
		c.wireMedia()
		c.change(ctx)
		return
	}
	c.connectTarget(ctx, t)
}

// connectTarget puts the target in the place of the transferor.
func (c *liveCall) connectTarget(ctx context.Context, t *transfer) {
	from := t.transferor
	t.transferee.isolated, t.transferor.isolated = false, false
	switch from {
	case c.a:
		c.a = t.target
	default:
		c.b = t.target
	}
	c.hangUp(from, sip.Reason{Q850: cause.NormalClearing})
	c.updateRecordingSides()
	c.wireMedia()
	c.unholdByOffer(t.transferee)
	c.unholdByOffer(t.target)
	c.agent = c.near().party()
	c.countHold()
	c.change(ctx, c.answeredEvent(true))
}

// unholdByOffer takes a leg off a hold whose holder has left the call.
func (c *liveCall) unholdByOffer(l *leg) {
	if !l.up() || l.heldAPI || l.session.LocalMedia().Direction == sdp.SendRecv {
		return
	}
	l.whenNoOfferPending(func() {
		m := l.session.LocalMedia()
		m.Direction = sdp.SendRecv
		c.offerMedia(l, m, func(ctx context.Context, _ sdp.Description, err error) {
			if err != nil {
				c.sw.cfg.Log.Warn("leg not taken off hold after a transfer", "call", c.id, "err", err)
				return
			}
			l.apply()
			c.recordHold(ctx, l)
		})
	})
}

// transferLegGone handles a leg that hung up during a transfer. It returns false if the leg has no part in it.
func (c *liveCall) transferLegGone(ctx context.Context, l *leg) bool {
	t := c.transfer
	if !t.running() {
		return false
	}
	switch {
	case l == t.target && t.target != nil && t.state.Status == "consulting":
		c.giveUp(ctx, t, "failed")
	case l == t.transferor && t.state.Status == "consulting":
		c.complete(ctx, false)
	case l == t.transferor:
		t.completeOnAnswer = true
		c.wireMedia()
		c.change(ctx)
	default:
		return false
	}
	return true
}
