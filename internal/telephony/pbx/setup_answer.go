package pbx

import (
	"context"
	"slices"
	"strings"

	"soniq/internal/platform/event"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/answermachine"
	"soniq/internal/telephony/pbx/cause"
)

// connected connects the caller with the leg that answered.
func (c *liveCall) connected(ctx context.Context, l *leg, answer sdp.Description) {
	c.b = l
	c.answered = c.sw.now()
	c.afterWhileActive(c.maxDuration(), c.maxDurationReached)
	c.sw.stats.answered.Add(1)
	body, ok := c.callerAnswer(answer)
	if !ok {
		return
	}
	c.a.answered, c.a.dirty = c.answered, true
	c.watch(c.a)
	c.wireMedia()
	c.recordByPolicy(ctx)
	c.writeAnswer(ctx, func() { c.answerWith(body) })
}

// answerWith sends the caller a 200 with the SDP.
func (c *liveCall) answerWith(body []byte) {
	if !c.isDurable() {
		c.endNotWritten()
		return
	}
	if err := c.a.in.Answer(body); err != nil {
		// The caller canceled at the same moment: Canceled or Lost is already on its way into the inbox.
		c.sw.cfg.Log.Debug("answer came too late", "call", c.id, "err", err)
	}
}

// callerAnswer returns the SDP of the 200 to the caller.
func (c *liveCall) callerAnswer(answer sdp.Description) (body []byte, ok bool) {
	switch {
	case c.a.in.Offer == nil:
		return c.a.session.Offer(sdp.RelayedOffer(answer)), true
	case c.a.localAnswer != nil: // the answer of the early media stays in force
		return c.a.localAnswer, true
	}
	if err := c.answerCaller(answer); err != nil {
		c.hangUp(c.b, sip.Reason{Q850: cause.TempFailure})
		c.reject(488, "Not Acceptable Here", call.Outcome{Reason: "carrier_error", HangupBy: "system", SIPStatus: 488})
		return nil, false
	}
	return c.a.localAnswer, true
}

// writeAnswer writes that the call was answered before tell runs. A call that the caller saw answered therefore
// always has a record with the answer.
func (c *liveCall) writeAnswer(ctx context.Context, tell func()) {
	c.agent = c.b.party()
	if c.a != nil && c.agent.UserID == "" && c.isServedBy(c.a) { // a callback
		trunk := c.agent.TrunkID
		c.agent = c.a.party()
		c.agent.TrunkID = trunk
	}
	c.changeDurably(ctx, tell, c.answeredEvent(false))
}

// answeredEvent returns the event call.answered with the connected party.
func (c *liveCall) answeredEvent(transferred bool) event.Payload {
	return event.CallAnswered{CallID: c.id, Direction: string(c.new.Direction), FromNumber: c.new.From, ToNumber: c.new.To,
		AnsweredAt: at(c.sw.now()), AnsweredBy: c.answeredBy(), AgentID: optional(c.agent.UserID), AgentName: optional(c.agent.Name),
		RingSeconds: wholeSeconds(c.answered.Sub(c.started)), Transferred: transferred}
}

// noteEstablished reports that a caller's trunk has carried a call: the ACK proves the address of its source.
func (c *liveCall) noteEstablished(ctx context.Context, l *leg) {
	if l != c.a || l.in == nil || l.trunkID == "" {
		return
	}
	if err := c.sw.cfg.Identity.TrunkCallEstablished(ctx, c.new.Org, l.trunkID, l.in.Source.Addr()); err != nil {
		c.sw.cfg.Log.Warn("source of a trunk not recorded", "org", c.new.Org, "call", c.id, "err", err)
	}
}

// onAcked completes a late offer: the caller's SDP answer arrives in the ACK (RFC 3261 §13.2.2.4). A call whose first
// offer gets no answer has no media and ends.
func (c *liveCall) onAcked(ctx context.Context, l *leg, e sip.Acked) {
	_, agreed := l.session.Remote()
	switch {
	case e.Unanswered && agreed: // the offer of a re-INVITE: the session stays as it is
		l.session.Rollback()
		return
	case e.Unanswered:
		c.hangUpAll(call.Outcome{Reason: "carrier_error", HangupBy: "system", SIPStatus: 488}, cause.TempFailure)
		return
	}
	c.noteEstablished(ctx, l)
	if len(e.SDP) == 0 {
		return
	}
	if _, err := l.session.ReceiveAnswer(e.SDP); err != nil {
		c.hangUpAll(call.Outcome{Reason: "carrier_error", HangupBy: "system", SIPStatus: 488}, cause.TempFailure)
		return
	}
	l.apply()
	c.wireMedia()
}

// Ring describes a call that rings at a user.
type Ring struct {
	Org, CallID, UserID string
	Number              string // number of the other side
	// Direct is set if the dialled number or extension is the user's own, without a queue before.
	Direct        bool
	TransferredBy *Caller // user who transfers the call; nil if none
}

// notifyRinging notifies observers once per dial, however many phones the user has.
func (h *forkedDial) notifyRinging(l *leg) {
	if l.caller.UserID == "" || h.ringNotified || h.hideCaller {
		return
	}
	h.ringNotified = true
	number := h.from.URI.User
	if h.anonymous {
		number = call.Anonymous
	}
	r := Ring{Org: h.c.new.Org, CallID: h.c.id, UserID: l.caller.UserID, Number: number, Direct: h.direct, TransferredBy: h.transferredBy}
	for _, o := range h.c.sw.ringObservers {
		o.UserRinging(r)
	}
}

// sharedTargets are kinds of targets without a single user. The users rung there get the caller like for any other
// call to the target.
var sharedTargets = []string{"queue:", "flow:", "voicemail:"}

// hideCallerAt reports whether the caller is hidden from the user that a call is transferred to.
func hideCallerAt(unshown bool, to string) bool {
	return unshown && !slices.ContainsFunc(sharedTargets, func(p string) bool { return strings.HasPrefix(to, p) })
}

// detectMachine analyses the greeting of the answering party, stores the result, and hangs up machines if hangUp is
// set.
func (c *liveCall) detectMachine(l *leg, hangUp bool) {
	g := &answermachine.Greeting{}
	decided := false // owned by the goroutine of OnAudio
	l.stream.OnAudio(func(pcm []int16) {
		if decided {
			return
		}
		v := g.Feed(pcm)
		if v == answermachine.Undecided {
			return
		}
		decided = true
		c.inbox.Push(message{run: func(ctx context.Context) { c.machineDetected(ctx, l, v == answermachine.Machine, hangUp) }})
	})
}

func (c *liveCall) machineDetected(ctx context.Context, l *leg, isMachine, hangUp bool) {
	l.stream.OnAudio(nil)
	c.machine = &isMachine
	c.addEntry("machine_detection.finished", l, detail{"machine": isMachine})
	c.change(ctx)
	if isMachine && hangUp {
		c.hangUpAll(call.Outcome{Reason: "machine", HangupBy: "system"}, cause.NormalClearing)
	}
}
