package sip

import (
	"net/netip"
	"strings"
	"sync"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Incoming INVITE: ringing, answer, rejection, CANCEL.

// Inbound is a new incoming call that is not answered yet. The exported fields do not change.
type Inbound struct {
	CallID      string
	RequestURI  sipmsg.URI
	From, To    sipmsg.Address
	Identity    sipmsg.Address   // P-Asserted-Identity or Remote-Party-ID of a trunk; zero if not given, and for accounts
	Passports   []string         // Identity (RFC 8224) as received: signed statements about the caller (PASSporT)
	Anonymous   bool             // Privacy: id, or an anonymous From
	Diversion   []sipmsg.Address // diverting parties, the last one first; trustworthy only from trunks
	Offer       []byte           // SDP; nil means a late offer: Answer must carry ours
	Source      netip.AddrPort
	Transport   sipmsg.Transport
	Account     string // id of the authenticated account, or
	TrunkID     string // id of the source's trunk
	UserAgent   string
	MaxForwards int
	// Replaces is the dialog that this call asks to replace (RFC 3891), nil for none. The switch decides whether the
	// caller may do that, and hangs up the replaced leg after Answer.
	Replaces *Leg

	leg            *Leg
	trying         sync.WaitGroup // until 100 Trying is sent
	fields         []sipmsg.Field
	authorizations []string        // Authorization and Proxy-Authorization values
	conn           *transport.Conn // nil: UDP
	viaProxy       bool            // the INVITE passed a proxy
	afterInvite    func()
}

// RunAfterInvite makes the goroutine of Handler.Invite run do after the handler returns. The handler may call it
// once. do counts as no lookup, and Close does not wait for it.
func (in *Inbound) RunAfterInvite(do func()) { in.afterInvite = do }

// Leg returns the call's dialog. It is valid from the start.
func (in *Inbound) Leg() *Leg { return in.leg }

// AwaitTrying waits until 100 Trying is sent to the caller (RFC 3261 §17.2.1), which is shortly after the handler
// gets the call. Call it before anything that must not happen earlier than the 100.
func (in *Inbound) AwaitTrying() { in.trying.Wait() }

// Listen sets the event callback. Earlier events are delivered first, possibly before Listen returns. Without a
// callback events are queued.
func (in *Inbound) Listen(on func(Event)) {
	in.leg.shard.runOrEnqueue(func(*shard) { in.leg.setListener(on) })
}

// Header returns the first value of a header field, or "" if there is none.
func (in *Inbound) Header(name string) string {
	for _, f := range in.fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// CalledParty returns the number that a carrier calls at our contact, if the request URI names the contact instead
// (P-Called-Party-ID, RFC 7315 §4.2). It is zero if not given.
func (in *Inbound) CalledParty() sipmsg.Address {
	a, err := sipmsg.ReadAddress(in.Header("P-Called-Party-ID"))
	if err != nil {
		return sipmsg.Address{}
	}
	return a.Address()
}

// setAccount records the calling account. A device cannot assert an identity (RFC 3325 §5), so Identity is cleared.
func (in *Inbound) setAccount(acc Account) { in.Account, in.Identity = acc.ID, sipmsg.Address{} }

// headerValues returns all values of a header field.
func (in *Inbound) headerValues(name string) (all []string) {
	for _, f := range in.fields {
		if strings.EqualFold(f.Name, name) {
			all = append(all, f.Value)
		}
	}
	return all
}

// AddHeader adds a header field to the following responses 101 to 299.
func (in *Inbound) AddHeader(h Header) {
	l := in.leg
	l.shard.runOrEnqueue(func(*shard) { l.responseHeader = sipmsg.AppendField(l.responseHeader, h.Name, h.Value) })
}

// Ring sends a provisional response, 180 to 183, with early media if sdp is not nil. If the caller supports 100rel, a
// response with SDP is repeated until the PRACK arrives, and the answer waits for that (RFC 3262). Its SDP is then
// the answer, and Answer must carry the same. For a late offer sdp is left out. Ring does nothing once the call is
// answered or over.
func (in *Inbound) Ring(status int, sdp []byte) {
	l := in.leg
	l.shard.runOrEnqueue(func(*shard) { l.sendProvisional(status, sdp) })
}

// Answer sends 200 with sdp and repeats it until the ACK arrives. Without an ACK within 64*T1 the call is hung up and
// Lost follows (RFC 3261 §13.3.1.4). It returns ErrLegEnded if the call is known to be over. A CANCEL that is being
// handled at this moment wins and is reported by Canceled.
func (in *Inbound) Answer(sdp []byte) error {
	if in.leg.ended.Load() {
		return ErrLegEnded
	}
	if !in.leg.shard.runOrEnqueue(func(*shard) { in.leg.sendAnswer(sdp, in.Offer == nil) }) {
		return ErrClosed
	}
	return nil
}

// Reject sends a final failure, 300 to 699, with the standard reason phrase. A text is sent as a Warning header with code 399 (RFC 3261
// §20.43). A retryAfter above zero adds Retry-After. Closed follows.
func (in *Inbound) Reject(status int, text string, retryAfter time.Duration) {
	in.leg.runOrEnqueue(func() { in.leg.sendRejection(status, text, retryAfter) })
}

// inviteAttempt records an INVITE by Call-ID and From tag. It distinguishes a retry and a merged request from a new
// call.
type inviteAttempt struct {
	timer
	key    txKey
	tx     txKey
	seq    uint32
	status int // of our rejection, 0 before
}

func (a *inviteAttempt) expire(s *shard) { delete(s.inviteAttempts, a.key) }

// handleInvite starts a new inbound call.
func (s *shard) handleInvite(m *received) {
	key := s.txKey(m, "INVITE")
	a := s.trackInviteAttempt(m, key)
	if a == nil {
		return
	}
	tx := s.newServerTx(m, key)
	tx.admissionKey, s.admissionKey = s.admissionKey, 0
	l := s.newInboundLeg(m, tx)
	var tooBrief bool
	if l.sessionGrant, tooBrief = l.grantSession(m); tooBrief {
		l.rejectForRetry(422, minSEField) // RFC 4028 §9
		return
	}
	in := l.newInbound(m)
	in.trying.Add(1)
	defer in.trying.Done()
	s.stats.invites.Add(1)
	s.srv.startInvite(in) // its responses follow the 100, because this shard sends both
	s.yieldToCall()
	l.respondToInvite(100, "", nil)
}

// trackInviteAttempt records an INVITE outside dialogs. It returns nil if the INVITE was answered here.
func (s *shard) trackInviteAttempt(m *received, tx txKey) *inviteAttempt {
	key := s.srv.hasher.key("a", m.CallID, m.From.Tag)
	a := s.inviteAttempts[key]
	switch {
	case a == nil:
		a = &inviteAttempt{key: key}
		a.owner = a
		s.inviteAttempts[key] = a
	case a.seq == m.CSeq && s.serverTxs[a.tx] != nil:
		// RFC 3261 §8.2.2.2: the same request by another route.
		s.refuseTx(m, 482, "")
		return nil
	case a.status >= 300:
		// A second INVITE with the same Call-ID is a retry after our rejection. Repeat the rejection, or the
		// carrier's failover turns one call into two.
		s.refuseTx(m, a.status, "")
		return nil
	}
	a.tx, a.seq, a.status = tx, m.CSeq, 0
	s.timers.set(&a.timer, s.now+txTimeout)
	return a
}

func (s *shard) newInboundLeg(m *received, tx *serverTx) *Leg {
	l := &Leg{
		shard: s, callID: m.CallID, done: make(chan struct{}), inbound: true, inviteServerTx: tx,
		localTag: sipmsg.NewTag(), remote: m.From.Value, remoteTag: m.From.Tag,
		remoteSeq: m.CSeq, inviteSeq: m.CSeq, flow: m.flow, lateOffer: m.SDP() == "",
	}
	l.owner = l
	l.sessionTimer.init(l)
	l.reliable = newReliable(l, m)
	l.learnAllow(m)
	l.notePeerSDP(m.SDP())
	l.key = s.dialogKey(l.callID, l.localTag)
	l.local = m.To.Value + ";tag=" + l.localTag
	l.route = dialogRoute{target: contactURI(&m.Message), routes: m.List(sipmsg.FieldRecordRoute)}
	if l.route.target == "" { // RFC 2543 callers may have none
		l.route.target = "sip:" + m.flow.Addr.String()
	}
	l.contact = s.srv.layer.ContactValue(m.To.Addr.URI, m.flow)
	l.responseHead = m.AppendHead(nil, l.localTag)
	l.recordRoute = m.AppendRecordRoute(nil)
	tx.leg = l
	s.legs[l.key] = l
	return l
}

// newInbound extracts the fields of the INVITE for the switch.
func (l *Leg) newInbound(m *received) *Inbound {
	in := &Inbound{
		CallID: m.CallID, From: m.From.Addr.Address(), To: m.To.Addr.Address(),
		Source: m.flow.Source(), Transport: m.flow.Transport(), UserAgent: sipmsg.Readable(m.Get(sipmsg.FieldUserAgent)),
		MaxForwards: m.MaxForwards, leg: l, fields: append([]sipmsg.Field(nil), m.Fields...),
	}
	in.RequestURI, _ = sipmsg.ParseURI(m.URI)
	if in.MaxForwards < 0 {
		in.MaxForwards = 70
	}
	if offer := m.SDP(); offer != "" {
		in.Offer = []byte(offer)
	}
	in.Identity, in.Anonymous, in.Diversion, in.Passports = m.AssertedIdentity(), m.IsAnonymous(), m.Diversions(), m.Passports()
	in.authorizations, in.conn, in.viaProxy = m.Authorizations(), m.flow.Conn, m.viaProxy()
	return in
}

// respondToInvite sends a response to the INVITE.
func (l *Leg) respondToInvite(status int, extra string, sdp []byte) {
	s := l.shard
	b := append(sipmsg.AppendStatus(s.buf[:0], status, ""), l.responseHead...)
	if status > 100 && status < 300 {
		b = append(b, l.recordRoute...)
		b = sipmsg.AppendField(b, "Contact", l.contact)
		b = append(b, s.srv.capabilityFields()...)
		b = append(b, l.responseHeader...)
	}
	b = append(b, extra...)
	s.buf = sipmsg.AppendBody(b, sipmsg.SDPType, sdp)
	l.inviteServerTx.respond(s, status, s.buf)
}

func (l *Leg) sendAnswer(sdp []byte, late bool) {
	if l.state != legRinging {
		return
	}
	if l.reliable.blocksAnswer() {
		l.reliable.afterPRACK = []func(){func() { l.sendAnswer(sdp, late) }} // RFC 3262 §3
		return
	}
	if l.offerAnswered {
		sdp = l.localSDP // RFC 3261 §13.2.1: the first answer counts
	}
	l.state = legAnswered
	l.respondToInvite(200, l.sessionGrant.headerFields(), sdp)
	l.awaitAck(&unackedAnswer{
		seq: l.inviteSeq, response: append([]byte(nil), l.shard.buf...), flow: l.inviteServerTx.flow, lateOffer: late,
	})
	l.noteLocalSDP(sdp)
	l.sessionTimer.startFromGrant(l.sessionGrant)
	l.reliable.stop(l.shard)
	l.inviteServerTx, l.responseHead, l.responseHeader, l.recordRoute = nil, nil, nil, nil
}

func (l *Leg) sendRejection(status int, text string, retryAfter time.Duration) {
	if l.state != legRinging || status < 300 || status > 699 {
		return
	}
	extra := sipmsg.WarningField(text)
	if retryAfter > 0 {
		extra += string(sipmsg.AppendInt([]byte("Retry-After: "), int64((retryAfter+time.Second-1)/time.Second))) + "\r\n"
	}
	l.respondToInvite(status, extra, nil)
	l.rememberRejection(status)
	l.terminate(Closed{})
}

// rememberRejection keeps a rejection for retries of the same call. 488 is left out, because the caller may retry
// with another offer.
func (l *Leg) rememberRejection(status int) {
	s := l.shard
	key := s.srv.hasher.key("a", l.callID, l.remoteTag)
	a := s.inviteAttempts[key]
	if a == nil {
		a = &inviteAttempt{key: key, seq: l.inviteSeq}
		a.owner = a
		s.inviteAttempts[key] = a
	}
	if status != 488 {
		a.status = status
	}
	s.timers.set(&a.timer, s.now+txTimeout)
}

// rejectForRetry rejects an INVITE that the caller may retry: with credentials (407) or a longer session (422). The
// next INVITE counts as a new one.
func (l *Leg) rejectForRetry(status int, extra string) {
	if l.state != legRinging {
		return
	}
	l.respondToInvite(status, extra, nil)
	l.terminate(Closed{})
}

// handleCancel handles a CANCEL of the unanswered call or of a re-INVITE (RFC 3261 §9.2).
func (l *Leg) handleCancel(m *received) {
	if r := l.pendingReinvite; r != nil && r.tx.invite {
		r.respond(l, 487, nil)
		return
	}
	if l.state != legRinging || !l.inbound {
		return
	}
	reason := strings.Join(m.List(sipmsg.FieldReason), ", ")
	q850, _ := parseReason(reason)
	l.respondToInvite(487, "", nil)
	l.terminate(Canceled{Q850: q850, Reason: reason})
}
