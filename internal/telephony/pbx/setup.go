package pbx

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"time"

	"soniq/internal/platform/limit"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/admission"
	"soniq/internal/telephony/pbx/cause"
)

// setUp routes a new call, rings, and writes its row while the phones ring.
func (c *liveCall) setUp(ctx context.Context) {
	leave := c.sw.admission.Done
	defer func() { leave() }()
	to, refusal, err := c.route(ctx)
	if err != nil {
		c.sw.cfg.Log.Error("call not routed", "call", c.id, "org", c.new.Org, "err", err)
		to.release()
		c.reject(503, "Service Unavailable", call.Outcome{Reason: "no_route", HangupBy: "system", SIPStatus: 503})
		return
	}
	if c.urgent && !to.isEmergency() && !isEmergencyRefusal(refusal) {
		to.release()
		c.rejectNotEmergency()
		return
	}
	if to.isEmergency() || isEmergencyRefusal(refusal) {
		c.protect()
	}
	if refusal == nil {
		refusal = c.enterLimits()
	}
	if refusal == nil {
		refusal = c.openMedia()
	}
	if refusal != nil {
		to.release()
		c.refuse(ctx, refusal)
		return
	}
	if to.script != nil {
		c.receiveScripted(ctx, to)
		return
	}
	c.sw.indexLeg(c.a)
	if to.isEmergency() {
		c.beginInBackground(ctx)
	}
	c.newInboundDial(to).start(ctx, c.ringTimeoutFor(to))
	if !c.done && !c.began {
		runtime.Gosched() // lets the INVITE leave before the row is written
		c.insertAsync(ctx, leave)
		leave = func() {}
	}
}

// refuse writes the call and refuses it.
func (c *liveCall) refuse(ctx context.Context, r *Refusal) {
	c.sw.stats.gated.Add(1)
	if isEmergencyRefusal(r) {
		c.beginInBackground(ctx)
		c.announceUnavailable(r)
		return
	}
	c.begin(ctx)
	if r.Elsewhere {
		c.addEntry("ring.skipped", nil, detail{"reason": r.Reason, "phrase": r.Phrase})
	}
	wait := time.Duration(0)
	if r.Limit != nil && r.Status == 503 {
		wait = retryAfter
	}
	c.rejectAfter(r.Status, r.Phrase, wait, call.Outcome{Reason: r.Reason, HangupBy: "system", SIPStatus: r.Status})
}

// enterLimits counts the call for its device, user and organisation. An emergency call passes every limit.
func (c *liveCall) enterLimits() *Refusal {
	if c.protected.Load() {
		c.countAlways()
		return nil
	}
	if full := c.sw.shares.Enter(c.partiesCounted(), c.sw.cfg.CallLimits); full != nil {
		r := &Refusal{Status: 486, Phrase: full.Error(), Reason: "blocked", Limit: full.Limit}
		c.limited(r)
		return r
	}
	c.counted = true
	return nil
}

// countAlways counts a call to which no limit applies.
func (c *liveCall) countAlways() {
	c.sw.shares.EnterAlways(c.partiesCounted())
	c.counted = true
}

// leaveLimits ends the count of the call.
func (c *liveCall) leaveLimits() {
	if c.counted {
		c.sw.shares.Leave(c.partiesCounted())
		c.counted = false
	}
}

// partiesCounted returns the parties that placed the call. They do not change.
func (c *liveCall) partiesCounted() admission.Parties {
	return admission.Parties{Device: c.new.DeviceID, User: c.new.UserID, Org: c.new.Org}
}

// rejectNotEmergency refuses, like other calls under overload, a call that was admitted as possible emergency call
// and is none.
func (c *liveCall) rejectNotEmergency() {
	c.a.in.Reject(503, "the server has reached its limit of calls", retryAfter)
	c.markLegEnded(c.a, "no_route", 503)
	c.end(call.Outcome{Reason: "no_route", HangupBy: "system", SIPStatus: 503})
}

// endNotWritten ends a call whose row could not be written.
func (c *liveCall) endNotWritten() {
	o := call.Outcome{Reason: "no_route", HangupBy: "system", SIPStatus: 503}
	c.reject(503, "Service Unavailable", o)
	c.hangUpAll(o, cause.TempFailure)
}

// ringTimeoutFor returns the ring time of a destination. It may be shorter if a script follows.
func (c *liveCall) ringTimeoutFor(to resolvedDestination) time.Duration {
	if to.user == nil || !to.user.ScriptAfterNoAnswer || to.user.RingFor == 0 {
		return c.callRingTimeout()
	}
	if to.user.RingChosen && c.ringLimit == 0 {
		return to.user.RingFor
	}
	return min(to.user.RingFor, c.callRingTimeout())
}

// newInboundDial returns the dial for the called party.
func (c *liveCall) newInboundDial(to resolvedDestination) *forkedDial {
	h := &forkedDial{c: c, role: "callee", to: to, direct: true, awaitsLost: true, maxForwards: max(c.a.in.MaxForwards-1, 1),
		diversion: c.a.in.Diversion, passports: c.a.passports(),
		from:      sipmsg.Address{Display: c.new.FromName, URI: sipmsg.URI{User: c.new.From}},
		anonymous: c.new.From == call.Anonymous, offer: c.calleeOffer}
	if to.user != nil {
		h.role = "agent"
	}
	h.onRing = c.passRinging
	h.onAnswer = c.connected
	h.onFail = func(ctx context.Context, e sip.Failed) { c.unanswered(ctx, to, e) }
	return h
}

// begin writes the call's row. A call without a row is not continued.
func (c *liveCall) begin(ctx context.Context) bool {
	if c.new.Org == "" {
		return false
	}
	if c.began {
		return true
	}
	c.awaitTrying()
	defer c.inserted.Store(true)
	c.began = true // set even if it fails: only the database's answer may be lost, and ending a missing call is harmless
	if err := c.sw.cfg.Store.Begin(ctx, c.new); err != nil {
		c.sw.cfg.Log.Error("call not written", "call", c.id, "org", c.new.Org, "err", err)
		return false
	}
	return true
}

// awaitTrying waits until 100 Trying was sent. Otherwise, after a kill, the caller's retransmitted INVITE would
// become a second call beside the written row.
func (c *liveCall) awaitTrying() {
	if c.a != nil && c.a.in != nil {
		c.a.in.AwaitTrying()
	}
}

// reject refuses the caller and ends the call.
func (c *liveCall) reject(status int, phrase string, o call.Outcome) {
	c.rejectAfter(status, phrase, 0, o)
}

// rejectAfter is reject with Retry-After; 0 sends none.
func (c *liveCall) rejectAfter(status int, phrase string, wait time.Duration, o call.Outcome) {
	if c.a != nil && c.a.in != nil && !c.a.over {
		c.a.in.Reject(status, phrase, wait)
		c.markLegEnded(c.a, o.Reason, status)
	}
	c.end(o)
}

// openMedia opens the caller's stream and reads the caller's offer.
func (c *liveCall) openMedia() (r *Refusal) {
	var err error
	if c.a.stream, err = c.openStream(nil, c.a.via()); err != nil {
		return noStreamRefusal(err)
	}
	c.a.session = c.a.stream.NewSession(profileOf(c.a.in.Transport, c.a.caller.SRTP))
	if c.a.in.Offer == nil { // RFC 3261 §13.2.1: late offer; our offer is sent in the 200
		return nil
	}
	if c.a.offer, err = c.a.session.ReceiveOffer(c.a.in.Offer); err != nil {
		return refusalOf(err)
	}
	return nil
}

// noStreamRefusal returns the refusal of a call without a stream.
func noStreamRefusal(err error) *Refusal {
	if errors.Is(err, media.ErrShare) {
		return &Refusal{Status: 503, Phrase: "the organisation uses its share of the RTP ports; end calls, or raise --org-share",
			Reason: "carrier_error", Limit: limit.StreamShare}
	}
	return &Refusal{Status: 503, Phrase: "no media ports are free", Reason: "carrier_error", Limit: limit.Streams}
}

// openStream opens the stream of a leg whose signalling comes from via, under the share of the call's organisation. An
// emergency call takes the stream of another call if none is free.
func (c *liveCall) openStream(beside *leg, via netip.Addr) (*media.Stream, error) {
	claim := media.Claim{Owner: c.new.Org, Use: media.NewCall}
	switch {
	case c.protected.Load():
		claim.Use = media.Emergency
	case c.restored || !c.answered.IsZero():
		claim.Use = media.Continued
	default:
		claim.Alone = c.sw.cfg.Identity.IsAlone(context.Background())
	}
	stream, err := openWith(c.sw.cfg.Media.For(claim), beside, via)
	if err != nil && c.protected.Load() {
		stream, err = c.openByPreemption(claim, beside, via, err)
	}
	if err != nil {
		c.limited(noStreamRefusal(err))
	}
	return stream, err
}

// limited counts the refusal of a stream and adds it to the timeline.
func (c *liveCall) limited(r *Refusal) {
	r.Limit.Refuse()
	c.addEntry("call.limited", nil, detail{"limit": r.Limit.Name, "sip_status": r.Status})
}

// openWith opens a stream. If possible it uses the packet loop of the leg beside, to which it will be bridged. A leg
// with IPv6 gets an IPv6 address.
func openWith(o media.Opener, beside *leg, via netip.Addr) (*media.Stream, error) {
	switch {
	case via.Is6() && !via.Is4In6():
		return o.OpenOn(netip.IPv6Unspecified(), ownAddress(via))
	case beside != nil && beside.stream != nil && beside.stream.Local().Addr().Is4():
		return o.OpenPeer(beside.stream)
	}
	return o.Open()
}

// ownAddress returns the local address for packets to another address; zero if unknown.
func ownAddress(to netip.Addr) netip.Addr {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9))) // sends no packet
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
}

func refusalOf(err error) *Refusal {
	r := &Refusal{Status: 488, Phrase: "no codec of the offer is supported", Reason: "carrier_error"}
	if e, ok := err.(*sdp.Error); ok {
		r.Status, r.Phrase = e.Status, e.Reason
	}
	return r
}

// calleeOffer returns the offer to the called side: the caller's codecs first, then those we can transcode.
func (c *liveCall) calleeOffer() sdp.LocalMedia {
	if c.a.in.Offer == nil {
		return sdp.LocalOffer()
	}
	return sdp.RelayedOffer(c.a.offer)
}

// passRinging relays ringing to the caller, with early media if only one phone rings.
func (c *liveCall) passRinging(l *leg, e sip.Provisional) {
	if c.awaitingDurability() {
		c.pendingInsert.afterCommit(func() { c.passRinging(l, e) })
		return
	}
	if l.dial == nil || l.dial.over {
		return // answered or ended meanwhile
	}
	defer c.firstRinging(l)
	alone := len(l.dial.legs) == 1 && c.a.in.Offer != nil
	if len(e.SDP) == 0 || !alone || !c.connectEarlyMedia(l, e.SDP) {
		c.a.in.Ring(180, nil)
		return
	}
	c.a.in.Ring(e.Status, c.a.localAnswer)
}

// connectEarlyMedia connects media before the answer, so that the caller hears the other side's audio. The leg's
// session stays open, because the answer in the 200 may differ. A later 18x, such as that of another fork, replaces an
// earlier one.
func (c *liveCall) connectEarlyMedia(l *leg, body []byte) bool {
	if l.phone != nil && profileOf(l.phone.Binding.Transport, "").Security == sdp.WebRTC {
		return false
	}
	preview := *l.session
	answer, err := preview.ReceiveAnswer(body)
	if err != nil || c.a.localAnswer == nil && c.answerCallerEarly(answer) != nil {
		return false
	}
	l.stream.Apply(&preview, l.via())
	if c.a.stream.Bridged() != l.stream {
		media.Bridge(c.a.stream, l.stream)
	}
	return true
}

// answerCallerEarly answers the caller's offer with the codecs of early media, in every direction that the offer
// allows. That answer is final, and the direction of the 200 may be wider than that of an 18x.
func (c *liveCall) answerCallerEarly(answer sdp.Description) error {
	answer.Direction = sdp.SendRecv
	return c.answerCaller(answer)
}

// answerCaller creates our answer to the caller's offer.
func (c *liveCall) answerCaller(answer sdp.Description) error {
	m, err := sdp.RelayedAnswer(c.a.offer, answer)
	if err != nil {
		return err
	}
	if c.a.localAnswer, err = c.a.session.Answer(m); err != nil {
		return err
	}
	c.a.apply()
	return nil
}

// unanswered starts the script after no answer, or refuses the caller.
func (c *liveCall) unanswered(ctx context.Context, to resolvedDestination, e sip.Failed) {
	next := c.afterNoAnswer(to, e)
	if !c.begin(ctx) || next != nil && !c.waitInserted() {
		c.reject(503, "Service Unavailable", call.Outcome{Reason: "no_route", HangupBy: "system", SIPStatus: 503})
		return
	}
	if next != nil {
		c.runScript(ctx, *next, c.a)
		return
	}
	c.reject(cause.StatusForCaller(e.Status), e.Reason, cause.Outcome(e.Status, e.Q850))
}
