package pbx

import (
	"context"
	"errors"
	"time"

	"soniq/media"
	"soniq/sip"
)

// reinviteTimeout is how long the other side may take to answer a re-INVITE that is passed on.
const reinviteTimeout = 8 * time.Second

// other is the opposite side.
func (c *liveCall) other(l *leg) *leg {
	if l == c.a {
		return c.b
	}
	return c.a
}

// reinvite handles an offer inside the dialog: a refresh is answered here; a hold, a resume or a moved address is passed
// on, and answered with what the other side says.
func (c *liveCall) reinvite(l *leg, e sip.Reinvite) {
	peer := c.other(l)
	switch {
	case c.b == nil || peer == nil || peer.over || c.done:
		e.Respond(481, nil)
	case c.busyOffer: // RFC 3261 §14.2: another offer is under way
		e.Respond(491, nil)
	case e.SDP == nil:
		e.Respond(200, l.session.Offer(l.session.Ours()))
	case l.session.Refresh(e.SDP):
		e.Respond(200, l.session.Local())
	default:
		c.passOn(l, peer, e)
	}
}

func (c *liveCall) passOn(l, peer *leg, e sip.Reinvite) {
	offer, err := l.session.ReceiveOffer(e.SDP)
	if err != nil {
		e.Respond(refusalOf(err).Status, nil)
		return
	}
	sdp := peer.session.Offer(media.OfferBeside(offer))
	c.busyOffer = true
	c.sw.running.Add(1)
	go func() {
		defer c.sw.running.Done()
		ctx, cancel := context.WithTimeout(context.Background(), reinviteTimeout)
		defer cancel()
		answer, err := peer.sip.Reinvite(ctx, sdp)
		c.inbox.push(message{event: reinvited{from: l, offer: e, sdp: answer, err: err}})
	}()
}

// reinviteDone answers who asked. A refusal leaves both sides as they were.
func (c *liveCall) reinviteDone(ctx context.Context, r reinvited) {
	l, peer := r.from, c.other(r.from)
	if c.done || l.over {
		return
	}
	sdp, err := c.agreed(l, peer, r)
	if err != nil {
		l.session.Rollback()
		peer.session.Rollback()
		r.offer.Respond(refusedWith(err), nil)
		return
	}
	r.offer.Respond(200, sdp)
	c.apply(l)
	c.apply(peer)
	c.noteHold(ctx, l)
}

// agreed turns the other side's answer into the one for who asked.
func (c *liveCall) agreed(l, peer *leg, r reinvited) ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	answer, err := peer.session.ReceiveAnswer(r.sdp)
	if err != nil {
		return nil, err
	}
	offer, err := media.ParseOffer(r.offer.SDP)
	if err != nil {
		return nil, err
	}
	m, err := media.AnswerBeside(offer, answer)
	if err != nil {
		return nil, err
	}
	return l.session.Answer(m)
}

func refusedWith(err error) int {
	var status *sip.StatusError
	if errors.As(err, &status) && status.Status >= 400 {
		return shownInDialog(status.Status)
	}
	var sdp *media.SDPError
	if errors.As(err, &sdp) {
		return sdp.Status
	}
	return 500
}

// shownInDialog keeps a refusal by the other side from ending this side's dialog (RFC 5057: 404, 410, 416, 482–485,
// 489, 502 and 604 and 481, 408 do).
func shownInDialog(status int) int {
	switch status {
	case 488, 491, 500, 603, 606:
		return status
	}
	return 488
}

// noteHold writes down that a phone put the other side on hold, or took it off.
func (c *liveCall) noteHold(ctx context.Context, l *leg) {
	remote, ok := l.session.Remote()
	if !ok || remote.Held() == l.held {
		return
	}
	wasHeld := c.a.held || c.b.held
	l.held = remote.Held()
	isHeld := c.a.held || c.b.held
	now := c.sw.Now()
	if isHeld && !wasHeld {
		c.heldSince = now
	} else if wasHeld && !isHeld {
		c.hold += now.Sub(c.heldSince)
		c.heldSince = time.Time{}
	}
	role, held := "caller", l.held
	if l != c.a {
		role = c.party().Role
	}
	c.ledger.write(ctx, "hold", func(ctx context.Context) error {
		return c.sw.Records.Held(ctx, c.plan.new.Org, c.id, role, held, now)
	})
}

// info passes DTMF by INFO on (RFC 6086); what the other side refuses is refused here.
func (c *liveCall) info(l *leg, e sip.Info) {
	peer := c.other(l)
	if peer == nil || peer.over || c.done {
		e.Respond(481)
		return
	}
	c.sw.running.Add(1)
	go func() {
		defer c.sw.running.Done()
		ctx, cancel := context.WithTimeout(context.Background(), reinviteTimeout)
		defer cancel()
		if err := peer.sip.Info(ctx, e.ContentType, e.Body); err != nil {
			e.Respond(refusedInfo(err))
			return
		}
		e.Respond(200)
	}()
}

func refusedInfo(err error) int {
	var status *sip.StatusError
	if errors.As(err, &status) && status.Status == 415 {
		return 415
	}
	return 500
}
