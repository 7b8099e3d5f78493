package sip

import (
	"fmt"
	"strings"
	"time"
)

// Outgoing INVITE: creating the leg and sending the request.

// defaultRingTimeout is the ring timeout of an outgoing call if none is given.
const ringLimit = 5 * time.Minute

// outgoingInvite is an outgoing call that is not answered.
type placed struct {
	outline
	tx       *clientTx
	canceled bool              // the CANCEL is sent
	small    bool              // TCP was tried once: use UDP from now on
	more     []hop             // further hops
	tried    int               // number of failed hops
	ring     time.Duration     // ring timeout
	late     bool              // our INVITE had no offer
	early    map[string]*early // by To tag
	fields   string            // header lines of every INVITE
	sdp      []byte            // its offer
}

// newOutgoingLeg creates the leg of a call to be placed.
func (s *shard) outgoingLeg(o *Outgoing, r route, on func(Event)) (*Leg, error) {
	l := &Leg{shard: s, callID: r.callID, gone: make(chan struct{}), localTag: newTag(), on: on, flow: r.flow, symmetric: o.Binding != nil,
		keys: keyring{creds: o.Credentials}}
	l.owner = l
	l.session.init(l)
	l.key = s.dialogKey(l.callID, l.localTag)
	from, to := o.From, o.To
	if from.URI.Host == "" {
		from.URI.Host, from.URI.Port, _ = splitHostPort(s.srv.advertised(r.flow.addr.Addr()))
	}
	if to.URI.Host == "" {
		to.URI = URI{Scheme: r.uri.Scheme, User: pick(to.URI.User, r.uri.User), Host: r.uri.Host, Port: r.uri.Port}
	}
	l.local = string(from.append(nil)) + ";tag=" + l.localTag
	l.remote = string(to.append(nil))
	l.contact = s.srv.contact(from.URI.String(), r.flow)
	l.path = path{target: r.target, routes: r.routes}
	extra, err := s.srv.callFields(o, r.uri)
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
	able := s.srv.able()
	if len(o.SDP) == 0 {
		able = s.srv.ableLate()
	}
	l.call = &placed{
		outline: outline{
			method: "INVITE", flow: r.flow, path: l.path, to: l.remote, maxForwards: o.MaxForwards,
			contentType: content, body: body,
		},
		more: r.more, fields: able + extra, sdp: o.SDP, ring: o.RingTimeout, late: len(o.SDP) == 0,
	}
	if l.call.ring <= 0 {
		l.call.ring = ringLimit
	}
	return l, nil
}

func pick(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// isReserved reports whether this package writes the field itself.
func (k fieldName) ours() bool {
	switch k {
	case fVia, fFrom, fTo, fCallID, fCSeq, fMaxForwards, fContact, fContentLength, fContentType, fRoute, fRecordRoute:
		return true
	}
	return false
}

// sendFirstInvite adds the leg to its shard, sends the INVITE and starts the ring timeout.
func (l *Leg) dial() {
	s := l.shard
	s.legs[l.key] = l
	l.sendInvite()
	s.timers.set(&l.timer, s.now+l.call.ring)
}

// maxUDPRequest is the size above which a request goes by TCP (RFC 3261 §18.1.1).
const largestUDP = 1300

func (l *Leg) sendInvite() {
	c, s := l.call, l.shard
	l.localSeq++
	c.seq, c.early = l.localSeq, nil
	c.extra = c.fields + l.session.fields()
	c.auth = l.keys.lines("INVITE", c.path.target, c.body)
	l.ackAuth = c.auth
	b, branch := l.write(make([]byte, 0, 1024+len(c.body)), &c.outline)
	if len(b) > largestUDP && !c.flow.reliable() && !l.symmetric && !c.small {
		l.sendLargeInvite()
		return
	}
	c.tx = s.start(clientKey{branch, inviteTx}, c.flow, b, l.invited)
	l.hurry()
}

// sendInviteByTCP sends the INVITE by TCP, or by UDP after all if there is no connection (RFC 3261 §18.1.1).
func (l *Leg) sendLargeInvite() {
	c, s := l.call, l.shard
	c.small = true
	o := c.outline
	o.flow = s.srv.connect(c.flow.addr)
	b, branch := l.write(nil, &o)
	c.tx = s.start(clientKey{branch, inviteTx}, o.flow, b, func(m *message, status int) {
		if m == nil && status == 503 && l.state == legRinging && l.call != nil {
			l.sendInvite()
			return
		}
		c.flow = o.flow
		l.invited(m, status)
	})
	l.hurry()
}
