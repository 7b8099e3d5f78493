package sip

import (
	"fmt"
	"strings"
	"time"
)

// Outgoing INVITE: creating the leg and sending the request.

// defaultRingTimeout is the ring timeout of an outgoing call if none is given.
const defaultRingTimeout = 5 * time.Minute

// outgoingInvite is an outgoing call that is not answered.
type outgoingInvite struct {
	requestTemplate
	tx           *clientTx
	canceled     bool                    // the CANCEL is sent
	noTCP        bool                    // TCP was tried once: use UDP from now on
	moreHops     []nextHop               // further hops
	failedHops   int                     // number of failed hops
	ringTimeout  time.Duration           // ring timeout
	lateOffer    bool                    // our INVITE had no offer
	earlyDialogs map[string]*earlyDialog // by To tag
	headerFields string                  // header lines of every INVITE
	offer        []byte                  // its offer
}

// newOutgoingLeg creates the leg of a call to be placed.
func (s *shard) newOutgoingLeg(o *Outgoing, r outgoingRoute, on func(Event)) (*Leg, error) {
	l := &Leg{shard: s, callID: r.callID, done: make(chan struct{}), localTag: newTag(), onEvent: on, flow: r.flow, symmetric: o.Binding != nil,
		digestClient: digestClient{creds: o.Credentials}}
	l.owner = l
	l.sessionTimer.init(l)
	l.key = s.dialogKey(l.callID, l.localTag)
	from, to := o.From, o.To
	if from.URI.Host == "" {
		from.URI.Host, from.URI.Port, _ = splitHostPort(s.srv.advertisedHostPort(r.flow.addr.Addr()))
	}
	if to.URI.Host == "" {
		to.URI = URI{Scheme: r.uri.Scheme, User: firstNonEmpty(to.URI.User, r.uri.User), Host: r.uri.Host, Port: r.uri.Port}
	}
	l.local = string(from.append(nil)) + ";tag=" + l.localTag
	l.remote = string(to.append(nil))
	l.contact = s.srv.contactValue(from.URI.String(), r.flow)
	l.route = dialogRoute{target: r.target, routes: r.routes}
	extra, err := s.srv.inviteFields(o, r.uri)
	if err != nil {
		return nil, err
	}
	if strings.IndexFunc(l.local+l.remote+l.contact, isControl) >= 0 {
		return nil, fmt.Errorf("sip: invite %s: control characters in an address", r.target)
	}
	content := sdpType
	body := o.SDP
	if len(o.Location) > 0 {
		content, body, extra = withLocation(body, o.Location, extra)
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

// isReserved reports whether this package writes the field itself.
func (k fieldName) isReserved() bool {
	switch k {
	case fVia, fFrom, fTo, fCallID, fCSeq, fMaxForwards, fContact, fContentLength, fContentType, fRoute, fRecordRoute:
		return true
	}
	return false
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
	c.auth = l.digestClient.authorizationFields("INVITE", c.path.target, c.body)
	l.inviteAuth = c.auth
	b, branch := l.appendRequest(make([]byte, 0, 1024+len(c.body)), &c.requestTemplate)
	if len(b) > maxUDPRequest && !c.flow.reliable() && !l.symmetric && !c.noTCP {
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
	o.flow = s.srv.tcpFlowTo(c.flow.addr)
	b, branch := l.appendRequest(nil, &o)
	c.tx = s.startClientTx(clientKey{branch, inviteTx}, o.flow, b, func(m *message, status int) {
		if m == nil && status == 503 && l.state == legRinging && l.outgoingInvite != nil {
			l.sendInvite()
			return
		}
		c.flow = o.flow
		l.handleInviteResponse(m, status)
	})
	l.shortenInviteTimeout()
}
