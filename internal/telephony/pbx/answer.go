package pbx

import (
	"context"

	"soniq/internal/platform/event"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// connected connects the caller with the leg that answered.
func (c *liveCall) connected(ctx context.Context, l *leg, answer media.Description) {
	c.b = l
	c.answered = c.sw.Now()
	c.afterWhileActive(c.maxDuration(), c.maxDurationReached)
	c.sw.stats.answered.Add(1)
	sdp, ok := c.callerAnswer(answer)
	if !ok {
		return
	}
	c.a.answered, c.a.dirty = c.answered, true
	c.watch(c.a)
	c.wireMedia()
	c.recordByPolicy(ctx)
	c.writeAnswer(ctx, func() { c.answerWith(sdp) })
}

// answerWith sends the caller a 200 with the SDP.
func (c *liveCall) answerWith(sdp []byte) {
	if !c.isDurable() {
		c.endNotWritten()
		return
	}
	if err := c.a.in.Answer(sdp); err != nil {
		// The caller canceled at the same moment: Canceled or Lost is already on its way into the inbox.
		c.sw.Log.Debug("answer came too late", "call", c.id, "err", err)
	}
}

// callerAnswer returns the SDP of the 200 to the caller.
func (c *liveCall) callerAnswer(answer media.Description) (sdp []byte, ok bool) {
	switch {
	case c.a.in.Offer == nil:
		return c.a.session.Offer(media.RelayedOffer(answer)), true
	case c.a.localAnswer != nil: // the answer of the early media stays in force
		return c.a.localAnswer, true
	}
	if err := c.answerCaller(answer); err != nil {
		c.hangUp(c.b, sip.Reason{Q850: tempFailure})
		c.reject(488, "Not Acceptable Here", call.Outcome{Reason: "carrier_error", HangupBy: "system", SIPStatus: 488})
		return nil, false
	}
	return c.a.localAnswer, true
}

// writeAnswer writes that the call was answered before tell runs. A call that the caller saw answered therefore
// always has a record with the answer.
func (c *liveCall) writeAnswer(ctx context.Context, tell func()) {
	c.agent = c.b.party()
	c.changeDurably(ctx, tell, c.answeredEvent(false))
}

// answeredEvent returns the event call.answered with the connected party.
func (c *liveCall) answeredEvent(transferred bool) event.Payload {
	return event.CallAnswered{CallID: c.id, Direction: string(c.new.Direction), FromNumber: c.new.From, ToNumber: c.new.To,
		AnsweredAt: at(c.sw.Now()), AnsweredBy: c.answeredBy(), AgentID: optional(c.agent.UserID), AgentName: optional(c.agent.Name),
		RingSeconds: wholeSeconds(c.answered.Sub(c.started)), Transferred: transferred}
}

// onAcked completes a late offer: the caller's SDP answer arrives in the ACK (RFC 3261 §13.2.2.4).
func (c *liveCall) onAcked(l *leg, e sip.Acked) {
	if len(e.SDP) == 0 {
		return
	}
	if _, err := l.session.ReceiveAnswer(e.SDP); err != nil {
		c.hangUpAll(call.Outcome{Reason: "carrier_error", HangupBy: "system", SIPStatus: 488}, tempFailure)
		return
	}
	l.apply()
	c.wireMedia()
}
