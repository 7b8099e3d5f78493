package sip

import (
	"strconv"
	"strings"
)

// Outgoing INVITE: handling its responses.

// handleInviteResponse handles each response to our INVITE.
func (l *Leg) invited(m *message, status int) {
	switch {
	case l.state == legCanceling:
		l.invitedTooLate(m, status)
	case (m == nil || status == 503) && l.tryNext():
	case m == nil:
		if status == 503 && l.symmetric {
			status = 430 // RFC 5626 §5.3.1: the phone's connection is closed
		}
		l.end(Failed{Status: status, Reason: phrase(status), Targets: l.call.tried + 1})
	case status < 200:
		l.provisional(m)
	case status < 300:
		l.answered(m)
	case (status == 401 || status == 407) && l.retryInvite(m):
	case status == 422 && l.session.raise(m):
		l.sendInvite()
	default:
		f := failure(m)
		f.Targets = l.call.tried + 1
		l.end(f)
	}
}

// handleResponseAfterCancel handles a response to an INVITE that was canceled meanwhile.
func (l *Leg) invitedTooLate(m *message, status int) {
	switch {
	case status < 200:
		l.sendCancel() // RFC 3261 §9.1: not before a provisional response
		return
	case m != nil && status < 300:
		l.refuseAnswer(m) // the 200 crossed our CANCEL
	}
	l.end(Closed{})
}

// handleAnswer handles the first 2xx: its dialog is the call (RFC 3261 §13.2.2.4).
func (l *Leg) answered(m *message) {
	c := l.call
	l.call = nil
	l.shard.timers.stop(&l.timer)
	l.remote, l.remoteTag = m.to.value, m.to.tag
	l.path = answeredPath(m, l.path.target)
	if !l.symmetric {
		l.shard.srv.guard.trust(m.flow.addr.Addr(), l.shard.now)
	}
	if l.flow.conn == nil && !l.symmetric {
		l.flow = m.flow
	}
	l.ackSeq = c.seq
	var sdp []byte
	if e := c.early[m.to.tag]; e != nil {
		sdp, l.remoteSeq = e.sdp, e.seq
	}
	if m.body != "" {
		sdp = []byte(m.body)
	}
	l.learn(m)
	l.say(c.sdp)
	l.hear(string(sdp))
	l.state = legConfirmed
	if c.late {
		l.state = legAnswered
	}
	l.session.granted(m)
	l.emit(Answered{SDP: sdp})
	if !c.late {
		l.shard.standBack() // requests of the call follow the ACK, because this shard sends both
		l.sendAck(c.seq, nil)
	}
}

// lateAnswer2xx handles a 2xx without a transaction: a repeated one, or one of another fork. A repeated 2xx gets the
// ACK again; the dialog of another fork is hung up.
func (l *Leg) strayAnswer(m *message) {
	s := l.shard
	s.stats.retransmissions.Add(1)
	switch {
	case m.to.tag != l.remoteTag && !l.inbound:
		l.refuseAnswer(m)
	case m.cseq == l.ackSeq && l.ack != nil:
		s.wire.send(l.hop(l.path), l.ack)
	}
}

// retryWithCredentials answers a challenge.
func (l *Leg) retryInvite(m *message) bool {
	if !l.keys.meet(m, &l.call.answered) {
		return false
	}
	l.sendInvite()
	return true
}

func failure(m *message) Failed {
	f := Failed{Status: m.status, Reason: m.reason}
	f.Q850, _ = readReason(m.get(fReason))
	after, _, _ := strings.Cut(m.get(fRetryAfter), ";")
	after, _, _ = strings.Cut(after, "(")
	f.RetryAfter, _ = strconv.Atoi(strings.TrimSpace(after))
	if m.status < 400 {
		f.Contact = contactURI(m)
	}
	return f
}
