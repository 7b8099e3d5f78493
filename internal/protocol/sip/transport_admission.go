package sip

import (
	"strings"
	"time"
)

// Admission control: overload, urgent calls, 503 before parsing.

// messagePeek holds the values that admission needs of a message, found without parsing it.
type messagePeek struct {
	line         string // start line
	callID       string
	branch       string // of the topmost Via
	request      bool
	invite       bool
	inDialog     bool   // To has a tag: the message belongs to a dialog
	ackOrCancel  bool   // an ACK or a CANCEL
	admissionKey uint64 // admission key of a new INVITE, once it is admitted
}

// peekMessage extracts these values. ok is false if raw is no SIP message.
func peekMessage(raw string) (p messagePeek, ok bool) {
	line, rest, ok := cutLine(raw)
	if !ok || len(line) < 12 {
		return p, false
	}
	p.line = line
	p.request = !strings.HasPrefix(line, "SIP/")
	p.invite = strings.HasPrefix(line, "INVITE ")
	p.ackOrCancel = strings.HasPrefix(line, "ACK ") || strings.HasPrefix(line, "CANCEL ")
	seenTo := false
	for rest != "" && (p.callID == "" || p.branch == "" || !seenTo) {
		line, rest, _ = cutLine(rest)
		if line == "" {
			break
		}
		if rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
			line, rest = unfold(line, rest)
		}
		name, value, _ := strings.Cut(line, ":")
		switch fieldKind(strings.TrimRight(name, " \t")) {
		case fCallID:
			p.callID = strings.Trim(value, " \t")
		case fVia:
			if p.branch == "" {
				p.branch = peekBranch(value)
			}
		case fTo:
			seenTo = true
			_, after, _ := strings.Cut(value, ">")
			p.inDialog = strings.Contains(after, "tag=")
		}
	}
	return p, true
}

func peekBranch(via string) string {
	_, after, ok := strings.Cut(via, "branch=")
	if !ok {
		return "-"
	}
	if end := strings.IndexAny(after, ";, \t"); end >= 0 {
		return after[:end]
	}
	return after
}

type admissionVerdict uint8

const (
	admitMessage admissionVerdict = iota
	refuseMessage
	dropMessage
)

// overloadDelay is the queue delay above which new calls are refused, until the queue is short again.
const overloadDelay = 250 * time.Millisecond

// admit decides about a message before it is processed. Only requests that start something new are ever refused.
func (s *Server) admit(sh *shard, p *messagePeek, f flow, now time.Duration) admissionVerdict {
	if !p.request {
		return admitMessage
	}
	if p.inDialog || p.ackOrCancel {
		if !s.guard.allowInDialog(f.addr.Addr(), now) {
			return dropMessage
		}
		return admitMessage
	}
	if !s.guard.allowRequest(f.addr.Addr(), now) {
		return dropMessage
	}
	if !p.invite {
		if s.lookups.Load() >= int64(s.limits.Lookups) {
			return dropMessage // a REGISTER over UDP is retransmitted
		}
		return admitMessage
	}
	mark := s.admissionKey(p.callID, p.branch)
	known, waiting := sh.admissionState(mark)
	if known {
		return admitMessage
	}
	full := s.draining.Load() || s.calls.Load() >= int64(s.limits.Calls) ||
		s.lookups.Load() >= int64(s.limits.Lookups) || waiting >= s.limits.QueueDepth/4 ||
		waiting > 64 && time.Duration(s.queueDelay.Load()) > overloadDelay || !s.inviteRate.Allow(now)
	if full && !s.admitUrgent(p, now) {
		return refuseMessage
	}
	sh.admit(mark)
	p.admissionKey = mark
	return admitMessage
}

// urgentPerSecond bounds the urgent calls that are admitted although others are refused.
const urgentPerSecond = 50

// admitUrgent reports whether a call is urgent and is admitted in spite of overload.
func (s *Server) admitUrgent(p *messagePeek, now time.Duration) bool {
	return s.config.IsUrgent != nil && s.config.IsUrgent(calledUser(p.line)) && s.urgentRate.Allow(now)
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
func (s *Server) refuseEarly(raw string, f flow) {
	s.stats.rejected.Add(1)
	var m message
	if m.parse(raw, f) != nil || m.readVia() != nil {
		return
	}
	m.callID = m.get(fCallID)
	m.to.value = m.get(fTo)
	b := m.appendResponse(make([]byte, 0, 1024), 503, "", s.statelessTag(&m), s.retryAfter())
	s.statelessSender.send(m.replyFlow(), b)
}

// retryAfter returns the Retry-After line of a 503.
func (s *Server) retryAfter() string {
	seconds := int64((s.limits.RetryAfter + time.Second - 1) / time.Second)
	return string(appendInt([]byte("Retry-After: "), seconds)) + "\r\n"
}
