package sip

import (
	"strconv"
	"strings"
)

// Outgoing INVITE: handling its responses.

// handleInviteResponse handles each response to our INVITE.
func (l *Leg) handleInviteResponse(m *message, status int) {
	switch {
	case l.state == legCanceling:
		l.handleResponseAfterCancel(m, status)
	case (m == nil || status == 503) && l.tryNextHop():
	case m == nil:
		if status == 503 && l.symmetric {
			status = 430 // RFC 5626 §5.3.1: the phone's connection is closed
		}
		l.terminate(Failed{Status: status, Reason: reasonPhrase(status), Targets: l.outgoingInvite.failedHops + 1})
	case status < 200:
		l.handleProvisional(m)
	case status < 300:
		l.handleAnswer(m)
	case (status == 401 || status == 407) && l.retryWithCredentials(m):
	case status == 422 && l.sessionTimer.raiseInterval(m):
		l.sendInvite()
	default:
		f := failedFrom(m)
		f.Targets = l.outgoingInvite.failedHops + 1
		l.terminate(f)
	}
}

// handleResponseAfterCancel handles a response to an INVITE that was canceled meanwhile.
func (l *Leg) handleResponseAfterCancel(m *message, status int) {
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
func (l *Leg) handleAnswer(m *message) {
	c := l.outgoingInvite
	l.outgoingInvite = nil
	l.shard.timers.stop(&l.timer)
	l.remote, l.remoteTag = m.to.value, m.to.tag
	l.route = routeFromResponse(m, l.route.target)
	if !l.symmetric {
		l.shard.srv.guard.trust(m.flow.addr.Addr(), l.shard.now)
	}
	if l.flow.conn == nil && !l.symmetric {
		l.flow = m.flow
	}
	l.ackSeq = c.seq
	var sdp []byte
	if e := c.earlyDialogs[m.to.tag]; e != nil {
		sdp, l.remoteSeq = e.sdp, e.seq
	}
	if m.body != "" {
		sdp = []byte(m.body)
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
func (l *Leg) lateAnswer2xx(m *message) {
	s := l.shard
	s.stats.retransmissions.Add(1)
	switch {
	case m.to.tag != l.remoteTag && !l.inbound:
		l.ackAndHangUp(m)
	case m.cseq == l.ackSeq && l.lastACK != nil:
		s.sender.send(l.nextFlow(l.route), l.lastACK)
	}
}

// retryWithCredentials answers a challenge.
func (l *Leg) retryWithCredentials(m *message) bool {
	if !l.digestClient.acceptChallenges(m, &l.outgoingInvite.answeredRealms) {
		return false
	}
	l.sendInvite()
	return true
}

func failedFrom(m *message) Failed {
	f := Failed{Status: m.status, Reason: m.reason}
	f.Q850, _ = parseReason(m.get(fReason))
	after, _, _ := strings.Cut(m.get(fRetryAfter), ";")
	after, _, _ = strings.Cut(after, "(")
	f.RetryAfter, _ = strconv.Atoi(strings.TrimSpace(after))
	if m.status < 400 {
		f.Contact = contactURI(m)
	}
	return f
}
