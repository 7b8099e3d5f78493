package sip

import (
	"strconv"
	"strings"

	"soniq/internal/protocol/sip/sipmsg"
)

// Responses to our INVITE; the next hop after a failure (RFC 3263 §4.3).

// handleInviteResponse handles each response to our INVITE.
func (l *Leg) handleInviteResponse(m *received, status int) {
	switch {
	case l.state == legCanceling:
		l.handleResponseAfterCancel(m, status)
	case (m == nil || status == 503) && l.tryNextHop():
	case m == nil:
		var lost *LostInvite
		if status == 503 && l.symmetric {
			status, lost = 430, &LostInvite{l.shard, l.outgoingInvite.tx} // RFC 5626 §5.3.1: the phone's connection is closed
		}
		l.terminate(Failed{Status: status, Reason: sipmsg.ReasonPhrase(status), Targets: l.outgoingInvite.failedHops + 1,
			Silent: !l.outgoingInvite.tx.gotProvisional, Lost: lost})
	case status < 200:
		l.handleProvisional(m)
	case status < 300:
		l.handleAnswer(m)
	case (status == 401 || status == 407) && l.retryWithCredentials(m):
	case status == 422 && l.sessionTimer.raiseInterval(m):
		l.sendInvite()
	default:
		f := failedFrom(&m.Message)
		f.Targets = l.outgoingInvite.failedHops + 1
		l.terminate(f)
	}
}

// handleResponseAfterCancel handles a response to an INVITE that was canceled meanwhile.
func (l *Leg) handleResponseAfterCancel(m *received, status int) {
	switch {
	case status < 200:
		l.sendCancel() // RFC 3261 §9.1: not before a provisional response
		return
	case m != nil && status < 300:
		l.ackAndHangUp(m) // the 200 crossed our CANCEL
	}
	l.terminate(Closed{})
}

// handleAnswer handles the first 2xx: its dialog is the call (RFC 3261 §13.2.2.4).
func (l *Leg) handleAnswer(m *received) {
	c := l.outgoingInvite
	l.outgoingInvite = nil
	l.shard.timers.stop(&l.timer)
	l.remote, l.remoteTag = m.To.Value, m.To.Tag
	l.route = routeFromResponse(m, l.route.target)
	if !l.symmetric {
		l.shard.srv.guard.Trust(m.flow.Addr.Addr(), l.shard.now)
	}
	if l.flow.Conn == nil && !l.symmetric {
		l.flow = m.flow
	}
	l.ackSeq = c.seq
	var sdp []byte
	if e := c.earlyDialogs[m.To.Tag]; e != nil {
		sdp, l.remoteSeq = e.sdp, e.seq
	}
	if answer := m.SDP(); answer != "" {
		sdp = []byte(answer)
	}
	l.learnAllow(m)
	l.noteLocalSDP(c.offer)
	l.notePeerSDP(string(sdp))
	l.state = legConfirmed
	if c.lateOffer {
		l.state = legAnswered
	}
	l.sessionTimer.startFromAnswer(m)
	l.emit(Answered{SDP: sdp})
	if !c.lateOffer {
		l.shard.yieldToCall() // requests of the call follow the ACK, because this shard sends both
		l.sendAck(c.seq, nil)
	}
}

// lateAnswer2xx handles a 2xx without a transaction: a repeated one, or one of another fork. A repeated 2xx gets the
// ACK again; the dialog of another fork is hung up.
func (l *Leg) lateAnswer2xx(m *received) {
	s := l.shard
	s.stats.retransmissions.Add(1)
	switch {
	case m.To.Tag != l.remoteTag && !l.inbound:
		if m.flow.IsSameHost(l.flow) { // all forks answer through the same hop
			l.ackAndHangUp(m)
		}
	case m.CSeq == l.ackSeq && l.lastACK != nil:
		s.sender.Send(l.nextFlow(l.route), l.lastACK)
	}
}

// retryWithCredentials answers a challenge.
func (l *Leg) retryWithCredentials(m *received) bool {
	if !l.digestClient.AcceptInitial(&m.Message, "INVITE", &l.outgoingInvite.answeredRealms) {
		return false
	}
	l.sendInvite()
	return true
}

func failedFrom(m *sipmsg.Message) Failed {
	f := Failed{Status: m.Status, Reason: m.Reason}
	f.Q850, _ = parseReason(m.Get(sipmsg.FieldReason))
	after, _, _ := strings.Cut(m.Get(sipmsg.FieldRetryAfter), ";")
	after, _, _ = strings.Cut(after, "(")
	f.RetryAfter, _ = strconv.Atoi(strings.TrimSpace(after))
	if m.Status < 400 {
		f.Contact = contactURI(m)
	}
	return f
}

// failoverAfter is how long to wait for a next hop if there is another one: T1 doubled three times, so that four
// datagrams were lost.
const failoverAfter = 15 * t1 / 2

// shortenInviteTimeout shortens the timeout of an INVITE if there are further hops, or a limit for silence.
func (l *Leg) shortenInviteTimeout() {
	c, s := l.outgoingInvite, l.shard
	limit := c.silenceLimit
	if len(c.moreHops) > 0 {
		limit = failoverAfter
	}
	if limit > 0 {
		c.tx.deadline = min(c.tx.deadline, s.now+limit)
		s.timers.set(&c.tx.timer, min(c.tx.at, c.tx.deadline))
	}
}

// tryNextHop sends the INVITE to the next address of its target, unless a fork has already responded (RFC 3263
// §4.3). Cancel and the ring timeout stay in effect.
func (l *Leg) tryNextHop() bool {
	c, s := l.outgoingInvite, l.shard
	if c == nil || len(c.earlyDialogs) > 0 || len(c.moreHops) == 0 {
		return false
	}
	s.srv.locator.MarkFailed(c.flow.Transport(), c.flow.Addr, s.now)
	next := c.moreHops[0]
	c.moreHops = c.moreHops[1:]
	c.failedHops++
	c.noTCP = false
	c.flow = s.srv.flowToHop(next)
	l.flow = c.flow
	l.contact = s.srv.layer.ContactValue(contactValueURI(l.contact), c.flow)
	l.sendInvite()
	return true
}

// contactValueURI returns the URI of our Contact value.
func contactValueURI(contact string) string {
	a, _ := sipmsg.ReadAddress(contact)
	return a.URI
}
