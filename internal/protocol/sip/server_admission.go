package sip

import (
	"strings"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Admission control: overload, urgent calls, 503 before parsing.

type admissionVerdict uint8

const (
	admitMessage admissionVerdict = iota
	refuseMessage
	dropMessage
	refuseBanned // 403: its source is banned, and an edge in front must know
)

// overloadDelay is the queue delay above which new calls are refused, until the queue is short again.
const overloadDelay = 250 * time.Millisecond

// admit decides about a message before it is processed. Only requests that start something new are ever refused. mark
// is the admission key of a new INVITE that is admitted, otherwise 0.
func (s *Server) admit(sh *shard, p *sipmsg.Peek, f transport.Flow, now time.Duration) (verdict admissionVerdict, mark uint64) {
	if !p.Request {
		return admitMessage, 0
	}
	source := f.Source().Addr()
	if p.InDialog || p.AckOrCancel {
		if !s.guard.AllowInDialog(source, now) {
			return dropMessage, 0
		}
		return admitMessage, 0
	}
	if verdict = s.admitSource(p, f, now); verdict != admitMessage {
		return verdict, 0
	}
	if !p.Invite {
		if s.lookups.Load() >= int64(s.limits.Lookups) {
			return dropMessage, 0 // a REGISTER over UDP is retransmitted
		}
		return admitMessage, 0
	}
	mark = s.admissionKey(p.CallID, p.Branch)
	known, waiting := sh.admissionState(mark)
	if known {
		return admitMessage, 0
	}
	full := s.draining.Load() || s.calls.Load() >= int64(s.limits.Calls) ||
		s.lookups.Load() >= int64(s.limits.Lookups) || waiting >= s.limits.QueueDepth/4 ||
		waiting > 64 && time.Duration(s.queueDelay.Load()) > overloadDelay || !s.inviteRate.Allow(now)
	if full && !s.admitUrgent(p, f, now) {
		return refuseMessage, 0
	}
	sh.admit(mark)
	return admitMessage, mark
}

// admitSource decides about a request outside dialogs by its source. A ban exempts the phones registered there, and
// neither a ban nor the limit of one source holds back an emergency call.
func (s *Server) admitSource(p *sipmsg.Peek, f transport.Flow, now time.Duration) admissionVerdict {
	source := f.Source().Addr()
	banned := s.guard.Banned(source, now) && !s.guard.IsPhone(source, sipmsg.PeekUser(p.Raw), now)
	switch {
	case !banned && s.guard.AllowRequest(source, now):
		return admitMessage
	case s.isEmergency(p) && s.guard.AllowExempt(source, now):
		return admitMessage
	case banned && f.Client.IsValid():
		return refuseBanned
	}
	return dropMessage
}

// isEmergency reports whether a request is an INVITE for what may be an emergency number.
func (s *Server) isEmergency(p *sipmsg.Peek) bool {
	return p.Invite && s.config.IsUrgent != nil && s.config.IsUrgent(calledUser(p.Line))
}

// urgentPerSecond bounds the urgent calls from unknown sources that are admitted although others are refused.
const urgentPerSecond = 50

// admitUrgent reports whether a call is urgent and is admitted in spite of overload. Sources that logged in before have
// no limit.
func (s *Server) admitUrgent(p *sipmsg.Peek, f transport.Flow, now time.Duration) bool {
	return s.isEmergency(p) && (s.guard.Trusted(f.Source().Addr(), now) || s.urgentRate.Allow(now))
}

// calledUser returns the user part of the URI of a request line, without parsing the URI.
func calledUser(line string) string {
	_, uri, _ := strings.Cut(line, " ")
	_, user, _ := strings.Cut(uri, ":")
	if end := strings.IndexAny(user, "@;?> "); end >= 0 {
		user = user[:end]
	}
	return user
}

// refuseEarly answers an INVITE with 503, without a transaction and without parsing all of it (RFC 3261 §21.5.4).
func (s *Server) refuseEarly(raw string, f transport.Flow) {
	s.stats.rejected.Add(1)
	s.answerEarly(raw, f, 503, s.retryAfter())
}

// answerEarly answers a request without a transaction and without parsing all of it.
func (s *Server) answerEarly(raw string, f transport.Flow, status int, extra string) {
	var m received
	if m.parse(raw, f) != nil || m.ReadVia() != nil {
		return
	}
	m.CallID = m.Get(sipmsg.FieldCallID)
	m.To.Value = m.Get(sipmsg.FieldTo)
	b := m.AppendResponse(make([]byte, 0, 1024), status, "", s.statelessTag(&m), extra)
	s.statelessSender.Send(m.replyFlow(), b)
}

// retryAfter returns the Retry-After line of a 503.
func (s *Server) retryAfter() string {
	seconds := int64((s.limits.RetryAfter + time.Second - 1) / time.Second)
	return string(sipmsg.AppendInt([]byte("Retry-After: "), seconds)) + "\r\n"
}
