package sip

import (
	"fmt"
	"strings"
	"time"

	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
)

// Outgoing INVITE: creating the leg and sending the request.

// defaultRingTimeout is the ring timeout of an outgoing call if none is given.
const defaultRingTimeout = 5 * time.Minute

// outgoingInvite is an outgoing call that is not answered.
type outgoingInvite struct {
	requestTemplate
	tx           *clientTx
	canceled     bool                    // the CANCEL is sent
	cancelReason string                  // value of its Reason field; "" sends none
	noTCP        bool                    // TCP was tried once: use UDP from now on
	moreHops     []resolve.Hop           // further hops
	failedHops   int                     // number of failed hops
	ringTimeout  time.Duration           // ring timeout
	silenceLimit time.Duration           // time without any response; 0: Timer B
	lateOffer    bool                    // our INVITE had no offer
	earlyDialogs map[string]*earlyDialog // by To tag
	headerFields string                  // header lines of every INVITE
	offer        []byte                  // its offer
}

// newOutgoingLeg creates the leg of a call to be placed.
func (s *shard) newOutgoingLeg(o *Outgoing, r outgoingRoute, on func(Event)) (*Leg, error) {
	l := &Leg{shard: s, callID: r.callID, done: make(chan struct{}), localTag: sipmsg.NewTag(), onEvent: on, flow: r.flow,
		symmetric: o.Binding != nil, trunk: o.Trunk,
		digestClient: digest.Client{Credentials: o.Credentials, Pins: s.srv.realmPins, Host: firstNonEmpty(o.NextHop.Host, r.uri.Host)}}
	if o.Binding != nil {
		l.account = o.Binding.Account
	}
	l.owner = l
	l.sessionTimer.init(l)
	l.key = s.dialogKey(l.callID, l.localTag)
	from, to := o.From, o.To
	if from.URI.Host == "" {
		from.URI.Host, from.URI.Port, _ = sipmsg.SplitHostPort(s.srv.layer.AdvertisedHostPort(r.flow.Addr.Addr()))
	}
	if to.URI.Host == "" {
		to.URI = sipmsg.URI{Scheme: r.uri.Scheme, User: firstNonEmpty(to.URI.User, r.uri.User), Host: r.uri.Host, Port: r.uri.Port}
	}
	l.local = string(from.AppendTo(nil)) + ";tag=" + l.localTag
	l.remote = string(to.AppendTo(nil))
	l.contact = s.srv.layer.ContactValue(from.URI.String(), r.flow)
	l.route = dialogRoute{target: r.target, routes: r.routes}
	extra, err := s.srv.inviteFields(o, r.uri)
	if err != nil {
		return nil, err
	}
	if strings.IndexFunc(l.local+l.remote+l.contact, sipmsg.IsControl) >= 0 {
		return nil, fmt.Errorf("sip: invite %s: control characters in an address", r.target)
	}
	content := sipmsg.SDPType
	body := o.SDP
	if len(o.Location) > 0 {
		content, body, extra = sipmsg.WithLocation(body, o.Location, extra)
	}
	able := s.srv.capabilityFields()
	if len(o.SDP) == 0 {
		able = s.srv.lateOfferCapabilityFields()
	}
	l.outgoingInvite = &outgoingInvite{
		requestTemplate: requestTemplate{
			method: "INVITE", flow: r.flow, path: l.route, to: l.remote, maxForwards: o.MaxForwards,
			contentType: content, body: body,
		},
		moreHops: r.moreHops, headerFields: able + extra, offer: o.SDP, ringTimeout: o.RingTimeout, lateOffer: len(o.SDP) == 0,
		silenceLimit: o.ResponseTimeout,
	}
	if l.outgoingInvite.ringTimeout <= 0 {
		l.outgoingInvite.ringTimeout = defaultRingTimeout
	}
	return l, nil
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// sendFirstInvite adds the leg to its shard, sends the INVITE and starts the ring timeout.
func (l *Leg) sendFirstInvite() {
	s := l.shard
	s.legs[l.key] = l
	l.sendInvite()
	s.timers.set(&l.timer, s.now+l.outgoingInvite.ringTimeout)
}

// maxUDPRequest is the size above which a request goes by TCP (RFC 3261 §18.1.1).
const maxUDPRequest = 1300

func (l *Leg) sendInvite() {
	c, s := l.outgoingInvite, l.shard
	l.localSeq++
	c.seq, c.earlyDialogs = l.localSeq, nil
	c.extraFields = c.headerFields + l.sessionTimer.headerFields()
	c.auth = l.digestClient.AuthorizationFields("INVITE", c.path.target, c.body)
	l.inviteAuth = c.auth
	b, branch := l.appendRequest(make([]byte, 0, 1024+len(c.body)), &c.requestTemplate)
	if len(b) > maxUDPRequest && !c.flow.Reliable() && !l.symmetric && !c.noTCP {
		l.sendInviteByTCP()
		return
	}
	c.tx = s.startClientTx(clientKey{branch, inviteTx}, c.flow, b, l.handleInviteResponse)
	l.shortenInviteTimeout()
}

// sendInviteByTCP sends the INVITE by TCP, or by UDP after all if there is no connection (RFC 3261 §18.1.1).
func (l *Leg) sendInviteByTCP() {
	c, s := l.outgoingInvite, l.shard
	c.noTCP = true
	o := c.requestTemplate
	o.flow = s.srv.layer.TCPFlowTo(c.flow.Addr)
	b, branch := l.appendRequest(nil, &o)
	c.tx = s.startClientTx(clientKey{branch, inviteTx}, o.flow, b, func(m *received, status int) {
		if m == nil && status == 503 && l.state == legRinging && l.outgoingInvite != nil {
			l.sendInvite()
			return
		}
		c.flow = o.flow
		l.handleInviteResponse(m, status)
	})
	l.shortenInviteTimeout()
}
