package pbx

import (
	"context"
	"errors"
	"time"

	"soniq/internal/platform/event"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/pbx/cause"
)

// reinviteTimeout limits the wait for the answer to a re-INVITE.
const reinviteTimeout = 8 * time.Second

// reinvite handles an offer in a dialog. A session refresh and changes that concern only this leg are answered
// locally. In a two-party call a changed address is relayed and answered with the other side's answer. So are hold and resume of a trunk,
// whose network plays the music. If a phone of a user holds, the other side is not asked: it hears our music.
func (c *liveCall) reinvite(ctx context.Context, l *leg, e sip.Reinvite) {
	peer := c.other(l)
	switch {
	case e.Early && !l.up(): // before the answer no session exists that could change
		e.Respond(491, nil)
	case c.done || !l.up():
		e.Respond(481, nil)
	case l.offerPending || peer != nil && peer.offerPending: // RFC 3261 §14.2: another offer is in progress
		e.Respond(491, nil)
	case e.SDP == nil:
		e.Respond(200, l.session.Offer(l.session.LocalMedia()))
	case l.session.IsRefresh(e.SDP):
		e.Respond(200, l.session.LocalBody())
	case c.canRelayOffer(l, peer) && !c.isHoldOfUser(l, e.SDP):
		c.relayOffer(l, peer, e)
	default:
		c.answerLocally(ctx, l, e)
	}
}

// refreshed handles a session refresh that returned a different SDP: the phone has a new address or key.
func (c *liveCall) refreshed(ctx context.Context, l *leg, e sip.Refreshed) {
	if !l.up() || l.offerPending {
		return
	}
	l.session.Offer(l.session.LocalMedia())
	if _, err := l.session.ReceiveAnswer(e.SDP); err != nil {
		l.session.Rollback()
		return
	}
	l.apply()
	c.recordHold(ctx, l)
}

// canRelayOffer reports whether two legs are bridged only to each other, and can use each other's offers.
func (c *liveCall) canRelayOffer(l, peer *leg) bool {
	return peer.up() && c.mixer == nil && c.transfer == nil && !l.isolated && !peer.isolated && !l.heldAPI && !peer.heldAPI &&
		!l.session.Secure() && !peer.session.Secure() && l.codec() == peer.codec()
}

// isHoldOfUser reports whether an offer is the hold or the resume of a user's phone. In emergency calls nothing is played instead of audio.
func (c *liveCall) isHoldOfUser(l *leg, offer []byte) bool {
	if l.caller.UserID == "" || c.isEmergency() {
		return false
	}
	d, err := sdp.ParseOffer(offer)
	return l.heldPeer || err == nil && d.Held()
}

// answerLocally answers an offer with the leg's current media in the requested direction.
func (c *liveCall) answerLocally(ctx context.Context, l *leg, e sip.Reinvite) {
	offer, err := l.session.ReceiveOffer(e.SDP)
	if err != nil {
		refuseOffer(e, err)
		return
	}
	m, err := c.answerFor(l, offer)
	var body []byte
	if err == nil {
		body, err = l.session.Answer(m)
	}
	if err != nil {
		l.session.Rollback()
		e.Respond(statusOfError(err), nil)
		return
	}
	e.Respond(200, body)
	l.apply()
	c.recordHold(ctx, l)
}

// answerFor returns our own answer to a leg. It prefers the codec of the other side.
func (c *liveCall) answerFor(l *leg, offer sdp.Description) (m sdp.LocalMedia, err error) {
	m, err = sdp.LocalAnswer(offer)
	if peer := c.other(l); peer.up() {
		if remote, ok := peer.session.Remote(); ok {
			m, err = sdp.RelayedAnswer(offer, remote)
		}
	}
	m.Direction = offer.Direction.Reverse()
	if l.heldAPI && m.Direction == sdp.SendRecv {
		m.Direction = sdp.SendOnly
	}
	return m, err
}

// refuseOffer refuses an offer that cannot be read, and names the reason.
func refuseOffer(e sip.Reinvite, err error) {
	r := refusalOf(err)
	e.Respond(r.Status, nil, r.Phrase)
}

func (c *liveCall) relayOffer(l, peer *leg, e sip.Reinvite) {
	offer, err := l.session.ReceiveOffer(e.SDP)
	if err != nil {
		refuseOffer(e, err)
		return
	}
	c.offerMedia(peer, sdp.RelayedOffer(offer), func(ctx context.Context, answer sdp.Description, err error) {
		c.relayedAnswer(ctx, l, peer, e, offer, answer, err)
	})
	l.offerPending = true
}

// relayedAnswer answers the offering leg. A refusal leaves both sides unchanged.
func (c *liveCall) relayedAnswer(ctx context.Context, l, peer *leg, e sip.Reinvite, offer, answer sdp.Description, err error) {
	c.offerDone(l)
	if l.over {
		return
	}
	var body []byte
	if err == nil {
		body, err = answerFrom(l, offer, answer)
	}
	if err != nil {
		l.session.Rollback()
		e.Respond(statusOfError(err), nil)
		return
	}
	e.Respond(200, body)
	l.apply()
	peer.apply()
	c.recordHold(ctx, l)
}

// answerFrom converts the other side's answer to the answer for the offering leg.
func answerFrom(l *leg, offer, answer sdp.Description) ([]byte, error) {
	m, err := sdp.RelayedAnswer(offer, answer)
	if err != nil {
		return nil, err
	}
	return l.session.Answer(m)
}

// offerMedia sends a re-INVITE and passes the answer to then in the call's goroutine. On an error the session is
// unchanged.
func (c *liveCall) offerMedia(l *leg, m sdp.LocalMedia, then func(ctx context.Context, answer sdp.Description, err error)) {
	c.offerMediaWithin(reinviteTimeout, nil, l, m, then)
}

// offerMediaWithin is offerMedia with a time limit. It also stops when gone is closed.
func (c *liveCall) offerMediaWithin(limit time.Duration, gone <-chan struct{}, l *leg, m sdp.LocalMedia,
	then func(ctx context.Context, answer sdp.Description, err error)) {
	ours := l.session.Offer(m)
	l.offerPending = true
	dialog := l.sip
	c.runAsync(limit, func(ctx context.Context) func(context.Context) {
		ctx, stop := cancelOn(ctx, gone)
		defer stop()
		body, err := dialog.Reinvite(ctx, ours)
		return func(ctx context.Context) {
			var answer sdp.Description
			if err == nil {
				answer, err = l.session.ReceiveAnswer(body)
			}
			if err != nil {
				l.session.Rollback()
			}
			c.offerDone(l)
			then(ctx, answer, err)
		}
	})
}

// cancelOn returns a context that also ends when gone is closed.
func cancelOn(ctx context.Context, gone <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	if gone != nil {
		go func() {
			select {
			case <-gone:
				stop()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, stop
}

// restoreTimeout is longer than the SIP server waits for any answer, so that this answer is not missed as well.
const restoreTimeout = 40 * time.Second

// restoreMedia offers the media in force again after the leg accepted an expired offer.
func (c *liveCall) restoreMedia(l *leg, m sdp.LocalMedia) {
	l.whenNoOfferPending(func() {
		if !l.up() {
			return
		}
		c.addEntry("media.restored", l, detail{"direction": m.Direction.String()})
		c.offerMediaWithin(restoreTimeout, nil, l, m, func(ctx context.Context, _ sdp.Description, err error) {
			if err != nil {
				c.sw.cfg.Log.Warn("leg still has the media of an expired offer", "call", c.id, "err", err)
				return
			}
			l.rtpProbing = false
			l.apply()
			c.recordHold(ctx, l)
		})
	})
}

// whenNoOfferPending runs f at once, or after the current re-INVITE of ours.
func (l *leg) whenNoOfferPending(f func()) {
	if l.offerPending {
		l.afterOffer = append(l.afterOffer, f)
		return
	}
	f()
}

func (c *liveCall) offerDone(l *leg) {
	l.offerPending = false
	for len(l.afterOffer) > 0 && !l.offerPending {
		f := l.afterOffer[0]
		l.afterOffer = l.afterOffer[1:]
		f()
	}
}

func statusOfError(err error) int {
	var status *sip.StatusError
	if errors.As(err, &status) && status.Status >= 400 {
		return cause.StatusInDialog(status.Status)
	}
	var refused *sdp.Error
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 500
}

// recordHold records that a phone put the other side on hold or took it off.
func (c *liveCall) recordHold(ctx context.Context, l *leg) {
	remote, ok := l.session.Remote()
	if !ok || remote.Held() == l.heldPeer {
		return
	}
	l.heldPeer, l.dirty = remote.Held(), true
	c.countHold()
	c.wireMedia()
	c.change(ctx, c.holdEvent(l, l.heldPeer, "peer"))
}

// countHold updates the time in which any party is on hold.
func (c *liveCall) countHold() {
	held, now := false, c.sw.now()
	for _, l := range c.parties() {
		held = held || l.role != "monitor" && (l.heldPeer || l.heldAPI)
	}
	switch {
	case held && c.heldSince.IsZero():
		c.heldSince = now
	case !held && !c.heldSince.IsZero():
		c.hold += now.Sub(c.heldSince)
		c.heldSince = time.Time{}
	default:
		return
	}
	c.countWork(now)
}

func (c *liveCall) holdEvent(l *leg, held bool, by string) event.Payload {
	now := at(c.sw.now())
	if held {
		c.addEntry("call.held", l, detail{"by": by})
		return event.CallHeld{CallID: c.id, LegID: l.id, By: by, At: now}
	}
	c.addEntry("call.unheld", l, detail{"by": by})
	return event.CallUnheld{CallID: c.id, LegID: l.id, By: by, At: now}
}

// onInfo relays a digit in the audio of the other side, or of all parties that hear the leg: as RFC 4733 event if
// negotiated, otherwise as a tone. Other INFO requests are relayed unchanged, and so is a digit if the peer can get
// neither. A refusal of the other side is returned (RFC 6086).
func (c *liveCall) onInfo(ctx context.Context, l *leg, e sip.Info) {
	digit, duration, pressed := sipmsg.ParseDTMFInfo(e.ContentType, e.Body)
	if pressed && l.allowDTMF(c.sw.now()) {
		c.onDTMF(ctx, l, digit, "info")
	}
	peer := c.other(l)
	switch {
	case pressed && c.relayDigit(l, peer, digit, duration):
		e.Respond(200)
		return
	case peer.up():
	case pressed && c.scripted != nil && l == c.scripted.leg:
		e.Respond(200)
		return
	default:
		e.Respond(481)
		return
	}
	dialog := peer.sip
	c.runAsync(reinviteTimeout, func(ctx context.Context) func(context.Context) {
		if err := dialog.Info(ctx, e.ContentType, e.Body); err != nil {
			e.Respond(infoStatus(err))
			return nil
		}
		e.Respond(200)
		return nil
	})
}

// relayDigit sends a digit of a leg to all parties that hear it, or to its peer.
func (c *liveCall) relayDigit(l, peer *leg, digit rune, d time.Duration) bool {
	return l.stream != nil && l.stream.QueueDigitToListeners(digit, d) || peer.up() && peer.stream != nil &&
		peer.stream.QueueDigit(digit, d)
}

func infoStatus(err error) int {
	var status *sip.StatusError
	if errors.As(err, &status) && status.Status == 415 {
		return 415
	}
	return 500
}
