package pbx

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
)

// callSetup is the state of a call until it is connected.
type callSetup struct {
	verstat      string               // verification result (verstat) of an external caller; empty if not verified
	headers      []sip.Header         // set by the API for the INVITEs to our phones and to the destination
	machine      *bool                // answered by a machine; nil: unknown
	announcement *connectAnnouncement // played to the answering party before it is connected
	offered      int32                // number of phones rung
	protected    atomic.Bool          // an emergency call, which no other call may end
}

// Calls placed by API: the phones of a user ring first. When one answers, the destination is dialled.

// Place starts a call. It returns when the call's row is on disk. Events report what follows.
func (s *Switch) Place(ctx context.Context, p call.Placement) error {
	if err := s.checkSpeech(ctx, p); err != nil {
		return err
	}
	if p.ScriptTarget != "" {
		return s.placeScripted(ctx, p)
	}
	owner, ok, err := s.cfg.Identity.User(ctx, p.Org, p.UserID)
	if err != nil || !ok {
		return firstError(err, op.Invalid(op.Field("user_id", "not_found", "there is no such user")))
	}
	if owner.Barred {
		return op.Fail("org_suspended", "the organisation is suspended")
	}
	first, refusal, err := s.phonesOf(ctx, owner, p.DeviceID)
	if err != nil {
		return err
	}
	if refusal != nil {
		return op.Invalid(op.Field("user_id", "not_reachable", refusal.Phrase))
	}
	c, err := s.newPlacedCall(ctx, p, owner)
	if err != nil {
		return err
	}
	return s.startPlaced(ctx, c, func(ctx context.Context) { c.ringUser(ctx, p, first) })
}

// startPlaced writes a call's row and starts the call when the journal has the row, or otherwise after the commit.
func (s *Switch) startPlaced(ctx context.Context, c *liveCall, begin func(ctx context.Context)) error {
	if !s.admission.Admit() {
		return op.Unavailable("overloaded", "calls come faster than they can be set up", "2")
	}
	defer s.admission.Done()
	if refusal := c.enterLimits(); refusal != nil {
		return refusal.problem()
	}
	if !s.register(c) {
		c.leaveLimits()
		return op.Unavailable("draining", "the node is shutting down", "5")
	}
	written, err := s.beginDurably(ctx, c)
	if err != nil {
		c.leaveLimits()
		s.unregister(c)
		return err
	}
	c.began = true
	s.stats.started.Add(1)
	org := c.new.Org
	s.startCall(ctx, c, begin)
	// If this fails, the API returns an error, so the call must not continue.
	if err := errors.Join(s.cfg.Journal.WaitDurable(ctx), written()); err != nil {
		_, ended := s.Do(context.WithoutCancel(ctx), org, c.id, call.End{})
		return errors.Join(err, ended)
	}
	return nil
}

// beginDurably returns when the beginning of a call cannot be lost any more. written waits for the row; WaitDurable
// makes the database write it at once.
func (s *Switch) beginDurably(ctx context.Context, c *liveCall) (written func() error, err error) {
	settle, sure := s.cfg.Journal.JournalBegin(c.new)
	if !sure {
		err := s.cfg.Store.Begin(ctx, c.new)
		c.inserted.Store(err == nil)
		return func() error { return nil }, err
	}
	o := &pendingInsert{durable: true, done: make(chan struct{})}
	c.pendingInsert = o
	s.cfg.Store.BeginAsync(context.WithoutCancel(ctx), c.new, func(err error) { // the row is written even if the request is canceled
		if o.err = err; err == nil {
			settle()
		}
		c.inserted.Store(true)
		close(o.done)
	})
	return func() error { <-o.done; return o.err }, nil
}

func firstError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// newPlacedCall returns the call of a placement, not written yet.
func (s *Switch) newPlacedCall(ctx context.Context, p call.Placement, owner Destination) (*liveCall, error) {
	n := call.New{Org: p.Org, ID: p.ID, Direction: call.Outbound, Source: p.Source, From: owner.Extension, FromName: owner.Name, To: p.To,
		UserID: owner.UserID, DeviceID: p.DeviceID, Sandbox: p.Sandbox, StartedAt: s.now(), Status: call.Queued, Metadata: p.Metadata,
		Reference: p.Reference, Purpose: p.Reason, By: p.By}
	if p.From != "" {
		n.From = p.From
	}
	if _, ok, err := s.cfg.Identity.Extension(ctx, p.Org, extensionOf(p.To)); err != nil {
		return nil, err
	} else if ok {
		n.Direction, n.To = call.Internal, extensionOf(p.To)
	}
	c := s.newCall(n)
	c.publishOrg()
	var err error
	if c.policy, err = s.cfg.Identity.Policy(ctx, p.Org); err != nil {
		return nil, err
	}
	c.policy.choose(p.Record, owner.Recording)
	c.caller = callerOf(owner, p.DeviceID)
	c.caller.ShowNumber, c.caller.Program, c.caller.Metadata = p.From, true, p.Metadata
	c.ringLimit, c.maxLength = p.RingTimeout, p.MaxDuration
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		c.headers = append(c.headers, sip.Header{Name: name, Value: p.Headers[name]})
	}
	return c, nil
}

// ringUser rings the user's own phones.
func (c *liveCall) ringUser(ctx context.Context, p call.Placement, first resolvedDestination) {
	c.prepareAnnouncement(p.Announce)
	h := &forkedDial{c: c, role: "caller", to: first, maxForwards: 70, offer: sdp.LocalOffer, header: autoAnswer,
		from: sipmsg.Address{Display: "Call to " + dialString(p.To), URI: sipmsg.URI{User: dialString(p.To)}}}
	if p.DisplayName != "" {
		h.header, h.from.Display = nil, p.DisplayName+": "+dialString(p.To)
	}
	h.header = slices.Concat(h.header, c.headers)
	h.onRing = func(l *leg, _ sip.Provisional) { c.firstRinging(l) }
	h.onAnswer = func(ctx context.Context, l *leg, _ sdp.Description) { c.dialOut(ctx, p, l) }
	h.onFail = func(_ context.Context, e sip.Failed) {
		o := cause.Outcome(e.Status, e.Q850)
		c.end(o)
	}
	h.start(ctx, c.callRingTimeout())
}

// firstRinging records that the first phone rings.
func (c *liveCall) firstRinging(l *leg) {
	if !c.ringing.IsZero() {
		return
	}
	c.ringing = c.sw.now()
	if l.trunk == nil { // phones of trunks ring without an event
		c.changeAsync(context.Background(), c.ringingAt(l))
	}
}

func (c *liveCall) ringingAt(l *leg) event.Payload {
	e := event.CallRinging{CallID: c.id, LegID: l.id, Role: l.role, Direction: string(c.new.Direction),
		FromNumber: c.new.From, ToNumber: c.new.To, Number: l.number, UserID: optional(l.caller.UserID),
		DeviceID: optional(l.caller.DeviceID), At: at(c.sw.now())}
	if l.sip != nil {
		e.SIPCallID = l.sip.CallID()
	}
	return e
}

// dialOut dials the destination for the user who has answered, and plays ringback to the user.
func (c *liveCall) dialOut(ctx context.Context, p call.Placement, l *leg) {
	c.a = l
	if c.ringing.IsZero() {
		c.ringing = c.sw.now()
	}
	c.wireMedia()
	c.change(ctx)
	caller := c.caller
	c.runAsync(routeTimeout, func(ctx context.Context) func(context.Context) {
		r, refusal, err := c.sw.resolveDestination(ctx, caller, p.To)
		return func(ctx context.Context) {
			if err != nil {
				refusal = &Refusal{Status: 503, Phrase: "the destination could not be resolved", Reason: "no_route"}
				c.sw.cfg.Log.Error("call not routed", "call", c.id, "org", c.new.Org, "err", err)
			}
			if refusal != nil {
				r.release()
				c.sw.stats.gated.Add(1)
				c.hangUpAll(call.Outcome{Reason: refusal.Reason, HangupBy: "system", SIPStatus: refusal.Status}, cause.NoRoute)
				return
			}
			c.dial(ctx, p, r)
		}
	})
}

// dial rings the destination.
func (c *liveCall) dial(ctx context.Context, p call.Placement, r resolvedDestination) {
	if r.outbound != nil && r.outbound.CallerID != "" {
		c.new.From, c.new.NumberID = r.outbound.CallerID, r.outbound.NumberID
	}
	if r.script != nil {
		c.runScript(ctx, r, c.a)
		return
	}
	h := c.newDial("callee", r, c.a)
	h.awaitsLost = true
	if r.user != nil {
		h.role = "agent"
	}
	h.header = c.headers
	h.onRing = func(l *leg, e sip.Provisional) {
		c.calleeRinging(l, e)
		c.writeRinging(l)
	}
	h.onAnswer = func(ctx context.Context, l *leg, _ sdp.Description) { c.bothUp(ctx, p, l) }
	h.onFail = func(ctx context.Context, e sip.Failed) {
		if next := c.afterNoAnswer(r, e); next != nil {
			c.runScript(ctx, *next, c.a)
			return
		}
		c.hangUpAll(cause.Outcome(e.Status, e.Q850), cause.NormalClearing)
	}
	h.start(ctx, c.ringTimeoutFor(r))
}

// calleeRinging connects the early media of the destination to the user, if it sends any.
func (c *liveCall) calleeRinging(l *leg, e sip.Provisional) {
	c.addEntry("callee.ringing", l, detail{"sip_status": e.Status})
	if len(e.SDP) == 0 || len(l.dial.legs) != 1 {
		return
	}
	preview := *l.session
	if _, err := preview.ReceiveAnswer(e.SDP); err != nil {
		return
	}
	l.stream.Apply(&preview, l.via())
	c.a.setLoop(nil)
	media.Bridge(c.a.stream, l.stream)
}

// writeRinging writes once that the destination rings. The user who is rung is among the call's legs then and counts
// as busy.
func (c *liveCall) writeRinging(l *leg) {
	switch {
	case !l.dirty:
	case l.trunk != nil:
		c.changeAsync(context.Background())
	default:
		c.changeAsync(context.Background(), c.ringingAt(l))
	}
}

// bothUp connects the user and the destination. The destination first hears the announcement, if any.
func (c *liveCall) bothUp(ctx context.Context, p call.Placement, l *leg) {
	c.b = l
	c.answered = c.sw.now()
	c.afterWhileActive(c.maxDuration(), c.maxDurationReached)
	c.sw.stats.answered.Add(1)
	if c.announcement.isPending() {
		c.isolate(l)
	}
	c.wireMedia()
	if c.announcement == nil {
		c.recordByPolicy(ctx)
	}
	c.writeAnswer(ctx, func() {})
	if p.Machine == "detect" || p.Machine == "hangup" {
		c.detectMachine(l, p.Machine == "hangup")
	}
	if c.announcement != nil {
		c.playBeforeConnect(ctx, l, func(ctx context.Context) { c.connectAnnounced(ctx, l) })
	}
}

// isolate keeps the answering party apart from the caller and ends the early media.
func (c *liveCall) isolate(l *leg) {
	l.isolated = true
	l.stream.Unbridge()
	c.a.stream.Unbridge()
}

// connectAnnounced connects the answering party after the announcement.
func (c *liveCall) connectAnnounced(ctx context.Context, l *leg) {
	if !l.up() {
		return
	}
	l.isolated = false
	c.wireMedia()
	if c.recording == nil && len(c.recorded) == 0 {
		c.recordByPolicy(ctx)
	}
	c.change(ctx)
}

// callRingTimeout returns the ring time of the call.
func (c *liveCall) callRingTimeout() time.Duration {
	if c.ringLimit > 0 {
		return c.ringLimit
	}
	return c.sw.cfg.RingTimeout
}

func (c *liveCall) maxDuration() time.Duration {
	if c.maxLength > 0 {
		return c.maxLength
	}
	return c.sw.cfg.MaxDuration
}
