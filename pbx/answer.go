package pbx

import (
	"context"

	"soniq/call"
	"soniq/media"
	"soniq/sip"
)

// pickedUp connects the two sides: the first who answers wins, the others are cancelled.
func (c *liveCall) pickedUp(ctx context.Context, l *leg, e sip.Answered) {
	if c.done || c.b != nil { // its CANCEL crossed the answer
		l.sip.Bye(sip.Reason{Q850: normalClearing})
		return
	}
	answer, err := l.session.ReceiveAnswer(e.SDP)
	if err != nil {
		l.sip.Bye(sip.Reason{Q850: tempFailure, Text: "no common codec"})
		c.failed(ctx, l, sip.Failed{Status: 488})
		return
	}
	c.b = l
	c.cancelOthers(l)
	c.answered = c.sw.Now()
	c.deadline.Reset(c.sw.MaxDuration)
	c.sw.stats.answered.Add(1)
	sdp, ok := c.connect(answer)
	if !ok {
		return
	}
	c.startRecording()
	c.writeAnswer(ctx)
	if err := c.in.Answer(sdp); err != nil {
		// The caller gave up at this very moment; Canceled or Lost is on its way into the inbox.
		c.sw.Log.Debug("answer came too late", "call", c.id, "err", err)
	}
}

func (c *liveCall) cancelOthers(winner *leg) {
	for _, l := range c.ring {
		if l != winner && !l.over {
			l.sip.Cancel()
		}
	}
	c.ring = nil
}

// connect bridges the media and returns what the caller is answered with.
func (c *liveCall) connect(answer media.Description) (sdp []byte, ok bool) {
	c.streamB.Apply(c.b.session, c.via(c.b))
	switch {
	case c.in.Offer == nil:
		sdp = c.a.session.Offer(media.OfferBeside(answer))
	case c.toCaller != nil: // the early answer stands
		sdp = c.toCaller
	default:
		if err := c.answerCaller(answer); err != nil {
			c.b.sip.Bye(sip.Reason{Q850: tempFailure})
			c.reject(488, "Not Acceptable Here", call.Outcome{Reason: "carrier_error", HangupBy: "system", SIPStatus: 488})
			return nil, false
		}
		sdp = c.toCaller
	}
	media.Bridge(c.streamA, c.streamB)
	return sdp, true
}

// writeAnswer writes down who answered, before the caller is told: a call that was connected has a record that says so,
// whatever happens next.
func (c *liveCall) writeAnswer(ctx context.Context) {
	a := call.Answer{Org: c.plan.new.Org, ID: c.id, At: c.answered, RingingAt: c.ringing, Ring: c.answered.Sub(c.started),
		By: c.party(), Codec: c.codec().String()}
	if c.recording != nil {
		a.Recording = &c.recording.new
	}
	c.ledger.write(ctx, "answer", func(ctx context.Context) error { return c.sw.Records.Answered(ctx, c.plan.new, a) })
}

// party describes who answered.
func (c *liveCall) party() call.Party {
	p := call.Party{Role: "callee", Number: c.plan.new.To, SIPCallID: c.b.sip.CallID()}
	if u := c.plan.user; u != nil {
		p.Role, p.UserID, p.Name, p.Extension, p.Number = "agent", u.UserID, u.Name, u.Extension, u.Extension
	}
	if c.b.phone != nil {
		p.DeviceID = c.b.phone.DeviceID
	}
	if c.b.trunk != nil {
		p.TrunkID = c.b.trunk.ID
	}
	return p
}

// codec is what both sides speak.
func (c *liveCall) codec() media.Codec {
	if d, ok := c.b.session.Remote(); ok {
		if codec, ok := d.Codec(); ok {
			return codec
		}
	}
	return media.PCMU
}

// acked completes a late offer: the caller's answer came with the ACK (RFC 3261 §13.2.2.4).
func (c *liveCall) acked(l *leg, e sip.Acked) {
	if len(e.SDP) == 0 {
		return
	}
	if _, err := l.session.ReceiveAnswer(e.SDP); err != nil {
		c.hangUpAll(call.Outcome{Reason: "carrier_error", HangupBy: "system", SIPStatus: 488}, tempFailure)
		return
	}
	c.apply(l)
}

// apply points a leg's stream at what its session agreed.
func (c *liveCall) apply(l *leg) {
	if l == c.a {
		c.streamA.Apply(l.session, c.in.Source.Addr())
		return
	}
	c.streamB.Apply(l.session, c.via(l))
}
