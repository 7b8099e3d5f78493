package pbx

import (
	"context"
	"crypto/rand"
	"time"

	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
)

// forkedDial rings several phones in parallel, or tries trunks one after the other, until one answers.
type forkedDial struct {
	c    *liveCall
	role string // role of the leg that answers
	to   resolvedDestination
	next int // index of the next trunk
	legs []*leg
	over bool

	legID string // ID of the first leg; empty: a new ID

	ringNotified  bool    // the switch's OnRing was called
	hideCaller    bool    // OnRing is not called: no screen pop with the caller
	transferredBy *Caller // user who transfers the call; may be nil
	direct        bool    // first destination of the call, no transfer or queue before

	from        sipmsg.Address // caller as presented
	anonymous   bool
	maxForwards int
	header      []sip.Header
	diversion   []sipmsg.Address
	history     bool // send Diversion also as History-Info (RFC 7044)
	passports   []string
	offer       func() sdp.LocalMedia
	timer       *time.Timer
	until       time.Time // time limit
	deadline    int       // number of the running time limit; an earlier one has no effect
	ringFor     time.Duration
	bestFailure *sip.Failed
	awaitsLost  bool         // waits for phones whose connection is closed while they ring
	lost        []*lostPhone // such phones

	onRing   func(l *leg, e sip.Provisional)                           // may be nil
	onAnswer func(ctx context.Context, l *leg, answer sdp.Description) // the leg is up and its media applied
	onFail   func(ctx context.Context, e sip.Failed)                   // no phone or trunk answered
}

// newDial returns a dial for a party that will talk to the leg with.
func (c *liveCall) newDial(role string, to resolvedDestination, with *leg) *forkedDial {
	h := &forkedDial{c: c, role: role, to: to, from: c.callerIDFor(with), maxForwards: 70,
		offer: func() sdp.LocalMedia { return offerBeside(with) }}
	h.anonymous = h.from.URI.User == call.Anonymous
	return h
}

// callerIDFor returns name and number of a leg as presented to another party.
func (c *liveCall) callerIDFor(l *leg) sipmsg.Address {
	a := sipmsg.Address{Display: l.caller.Name, URI: sipmsg.URI{User: l.number}}
	if l.caller.UserID == "" && l.number == c.new.From {
		a.Display = c.new.FromName
	}
	return a
}

// offerBeside returns the media offered to the future partner of a leg.
func offerBeside(l *leg) sdp.LocalMedia {
	if remote, ok := l.session.Remote(); ok {
		m := sdp.RelayedOffer(remote)
		m.Direction = sdp.SendRecv
		return m
	}
	return sdp.LocalOffer()
}

// start begins to ring. It fails when the limit has passed. The limit of a trunk begins with its first 18x.
func (h *forkedDial) start(ctx context.Context, limit time.Duration) {
	if h.isEmergency() {
		h.c.protect()
	}
	h.ringFor = limit
	h.arm(limit)
	if h.to.outbound != nil {
		h.tryTrunk(ctx)
		return
	}
	for i := range h.to.phones {
		h.ringPhone(ctx, &h.to.phones[i])
	}
	h.failIfNoneLeft(ctx)
}

// arm adds the dial to its call and starts the time limit.
func (h *forkedDial) arm(limit time.Duration) {
	h.c.dials = append(h.c.dials, h)
	h.startTimer(limit)
}

// startTimer starts the time limit, or starts it again.
func (h *forkedDial) startTimer(limit time.Duration) {
	c := h.c
	if h.timer != nil {
		h.timer.Stop()
	}
	h.until = time.Now().Add(limit)
	h.deadline++
	n := h.deadline
	h.timer = c.after(limit, func(ctx context.Context) {
		if !h.over && h.c == c && h.deadline == n {
			h.expired(ctx)
		}
	})
}

// expired ends the dial, or gives up a trunk that did not ring. An emergency call rings without limit, and its last
// trunk may take any time to ring.
func (h *forkedDial) expired(ctx context.Context) {
	switch l := h.unrungTrunk(); {
	case l != nil && (!h.isEmergency() || h.moreTrunks()):
		if l.sip != nil {
			l.sip.Bye(sip.Reason{Q850: cause.NormalClearing})
		}
		h.failed(ctx, l, sip.Failed{Status: 504, Reason: "No progress"})
	case !h.isEmergency():
		h.cancel()
		h.fail(ctx, sip.Failed{Status: 480, Reason: "No answer", Q850: cause.NoAnswer})
	}
}

func (h *forkedDial) ringPhone(ctx context.Context, p *Phone) *leg {
	l := h.newLeg()
	l.phone, l.number = p, h.to.user.Extension
	l.caller = callerOf(*h.to.user, p.DeviceID)
	o := sip.Outgoing{Binding: &p.Binding, From: h.from,
		To: sipmsg.Address{URI: sipmsg.URI{User: h.to.user.Extension}}, Identity: h.verifiedIdentity(),
		Header: h.c.browserHeader(p.Binding.Transport)}
	h.invite(ctx, l, o, profileOf(p.Binding.Transport, p.SRTP))
	return l
}

func (h *forkedDial) newLeg() *leg {
	l := h.c.newLeg(h.role)
	l.dial = h
	if h.legID != "" {
		l.id, h.legID = h.legID, ""
	}
	return l
}

// invite sends the INVITE. A leg that cannot be created counts as failed.
func (h *forkedDial) invite(ctx context.Context, l *leg, o sip.Outgoing, p sdp.Profile) {
	c := h.c
	c.offered++
	h.legs = append(h.legs, l)
	stream, err := c.openStream(c.a, l.via())
	if err != nil {
		h.failed(ctx, l, sip.Failed{Status: 503, Reason: noStreamRefusal(err).Phrase})
		return
	}
	l.stream, l.session = stream, stream.NewSession(p)
	m := h.offer()
	if l.trunk != nil {
		m = filterCodecs(m, l.trunk.Codecs)
	}
	o.SDP = l.session.Offer(m)
	o.MaxForwards = h.maxForwards
	o.Header = append(append([]sip.Header(nil), o.Header...), h.header...)
	o.Diversion = h.diversion
	if h.history {
		o.HistoryInfo = h.diversion
	}
	if o.Anonymous = h.anonymous; h.anonymous && h.to.outbound == nil {
		o.From.Display = "Anonymous"
	}
	o.CallID = rand.Text()
	l.publishID()
	c.sw.byCallID.Store(o.CallID, l) // stored before the INVITE is sent, so that the INVITE is in the timeline
	if l.sip, err = c.sw.server.Invite(ctx, o, l.deliver); err != nil {
		c.sw.byCallID.Delete(o.CallID)
		c.sw.cfg.Log.Warn("leg not invited", "call", c.id, "err", err)
		h.failed(ctx, l, sip.Failed{Status: 503})
		return
	}
	if l.caller.UserID != "" {
		c.sw.releases.AddRinging(l.caller.UserID, l.sip.Done())
	}
	c.sw.indexLeg(l)
	c.addEntry("leg.invited", l, detail{"number": l.number})
}

// onProvisional reports ringing.
func (c *liveCall) onProvisional(l *leg, e sip.Provisional) {
	h := l.dial
	if h == nil || h.over {
		return
	}
	if l.rang.IsZero() {
		l.rang = c.sw.now()
		h.notifyRinging(l)
		if l.trunk != nil {
			h.startTimer(h.ringFor)
		}
	}
	c.addEntry("leg.ringing", l, detail{"sip_status": e.Status})
	if h.onRing != nil {
		h.onRing(l, e)
	}
}

// onAnswered connects the first leg that answers. The others are canceled.
func (c *liveCall) onAnswered(ctx context.Context, l *leg, e sip.Answered) {
	h := l.dial
	if h == nil || h.over { // the CANCEL crossed the 200
		l.sip.Bye(sip.Reason{Q850: cause.NormalClearing})
		return
	}
	answer, err := l.session.ReceiveAnswer(e.SDP)
	if err != nil {
		l.sip.Bye(sip.Reason{Q850: cause.TempFailure, Text: "no common codec"})
		h.failed(ctx, l, sip.Failed{Status: 488})
		return
	}
	l.answered, l.dirty, l.dial = c.sw.now(), true, nil
	h.stopExcept(l)
	l.apply()
	c.watch(l)
	c.addEntry("leg.answered", l, detail{"codec": l.codec().String()})
	h.onAnswer(ctx, l, answer)
	for _, f := range l.onAnswer {
		f()
	}
	l.onAnswer = nil
}

// onFailed handles the failure of one leg: the next trunk, the remaining phones, or the end of the dial.
func (c *liveCall) onFailed(ctx context.Context, l *leg, e sip.Failed) {
	if h := l.dial; h != nil {
		h.failed(ctx, l, e)
		return
	}
	c.markLegEnded(l, "", e.Status)
}

func (h *forkedDial) failed(ctx context.Context, l *leg, e sip.Failed) {
	h.c.markLegEnded(l, cause.Outcome(e.Status, e.Q850).Reason, e.Status)
	l.dial = nil
	h.removeLeg(l)
	if h.over {
		return
	}
	if e.Silent && l.trunk != nil {
		e.Status = 504 // a 408 would mean that the number rang
	}
	if p := l.phone.next(e.Status); p != nil && l.rang.IsZero() {
		h.ringPhone(ctx, p)
		return
	}
	if l.phone != nil && h.awaitsLost && e.Status == statusFlowFailed {
		h.awaitLost(l, e)
		return
	}
	if l.phone != nil {
		h.c.sw.cancelWhenRegistered(&lostPhone{phone: l.phone, invite: e.Lost})
	}
	h.keepBestFailure(e)
	if e.Status >= 600 { // RFC 3261 §16.7 step 5: a global refusal ends every branch
		h.cancel()
	}
	if len(h.legs) == 0 && h.to.outbound != nil && cause.Retryable(e.Status) && h.moreTrunks() {
		h.tryTrunk(ctx)
		return
	}
	h.failIfNoneLeft(ctx)
}

func (h *forkedDial) removeLeg(l *leg) {
	for i, x := range h.legs {
		if x == l {
			h.legs = append(h.legs[:i:i], h.legs[i+1:]...)
			return
		}
	}
}

func (h *forkedDial) keepBestFailure(e sip.Failed) {
	if h.bestFailure == nil || cause.Rank(e.Status) < cause.Rank(h.bestFailure.Status) {
		h.bestFailure = &e
	}
}

// failIfNoneLeft ends the dial if no leg rings any more and none may ring again.
func (h *forkedDial) failIfNoneLeft(ctx context.Context) {
	if len(h.legs)+len(h.lost) > 0 || h.over {
		return
	}
	e := sip.Failed{Status: 480}
	if h.bestFailure != nil {
		e = *h.bestFailure
	}
	h.fail(ctx, e)
}

func (h *forkedDial) fail(ctx context.Context, e sip.Failed) {
	h.stop()
	h.onFail(ctx, e)
}

// stop ends the dial and cancels its legs.
func (h *forkedDial) stop() { h.stopExcept(nil) }

func (h *forkedDial) stopExcept(winner *leg) {
	if h.over {
		return
	}
	h.over = true
	h.forgetLost()
	h.timer.Stop()
	h.removeLeg(winner)
	reason := ""
	if winner != nil {
		reason = sip.CompletedElsewhere
	}
	h.cancelWith(reason)
	h.c.dials = without(h.c.dials, h)
	switch {
	case winner == nil:
		h.to.release()
	case h.to.outbound != nil && h.to.outbound.Release != nil:
		winner.release = append(winner.release, h.to.outbound.Release)
	}
}

// cancel ends the ringing legs without a Reason.
func (h *forkedDial) cancel() { h.cancelWith("") }

// cancelWith ends the ringing legs, with a Reason field unless it is empty. Bye sends CANCEL to a ringing leg and BYE to an answered one. A
// phone may have answered without the call knowing yet.
func (h *forkedDial) cancelWith(reason string) {
	for _, l := range h.legs {
		if l.sip != nil && !l.over {
			l.sip.Bye(sip.Reason{Q850: cause.NormalClearing, Cancel: reason})
		}
		l.dial = nil
		h.c.markLegEnded(l, "canceled", 0)
	}
	h.legs = nil
}

func without[T comparable](all []T, x T) []T {
	for i := range all {
		if all[i] == x {
			return append(all[:i:i], all[i+1:]...)
		}
	}
	return all
}

func callerOf(d Destination, device string) Caller {
	return Caller{Org: d.Org, UserID: d.UserID, Extension: d.Extension, Name: d.Name, Sandbox: d.Sandbox, DeviceID: device}
}
