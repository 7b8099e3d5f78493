package sip

import (
	"strings"
	"time"
)

// Admission control: overload, urgent calls, 503 before parsing.

// messagePeek holds the values that admission needs of a message, found without parsing it.
type peeked struct {
	line    string // start line
	callID  string
	branch  string // of the topmost Via
	request bool
	invite  bool
	inside  bool   // To has a tag: the message belongs to a dialog
	ack     bool   // an ACK or a CANCEL
	mark    uint64 // admission key of a new INVITE, once it is admitted
}

// peekMessage extracts these values. ok is false if raw is no SIP message.
func peek(raw string) (p peeked, ok bool) {
	line, rest, ok := cutLine(raw)
	if !ok || len(line) < 12 {
		return p, false
	}
	p.line = line
	p.request = !strings.HasPrefix(line, "SIP/")
	p.invite = strings.HasPrefix(line, "INVITE ")
	p.ack = strings.HasPrefix(line, "ACK ") || strings.HasPrefix(line, "CANCEL ")
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
				p.branch = branchIn(value)
			}
		case fTo:
			seenTo = true
			_, after, _ := strings.Cut(value, ">")
			p.inside = strings.Contains(after, "tag=")
		}
	}
	return p, true
}

func branchIn(via string) string {
	_, after, ok := strings.Cut(via, "branch=")
	if !ok {
		return "-"
	}
	if end := strings.IndexAny(after, ";, \t"); end >= 0 {
		return after[:end]
	}
	return after
}

type verdict uint8

const (
	letIn verdict = iota
	refuseIt
	dropIt
)

// overloadDelay is the queue delay above which new calls are refused, until the queue is short again.
const sickLag = 250 * time.Millisecond

// admit decides about a message before it is processed. Only requests that start something new are ever refused.
func (s *Server) admit(sh *shard, p *peeked, f flow, now time.Duration) verdict {
	if !p.request {
		return letIn
	}
	if p.inside || p.ack {
		if !s.guard.allowInside(f.addr.Addr(), now) {
			return dropIt
		}
		return letIn
	}
	if !s.guard.allow(f.addr.Addr(), now) {
		return dropIt
	}
	if !p.invite {
		if s.lookups.Load() >= int64(s.limits.Lookups) {
			return dropIt // a REGISTER over UDP is retransmitted
		}
		return letIn
	}
	mark := s.mark(p.callID, p.branch)
	known, waiting := sh.admitted(mark)
	if known {
		return letIn
	}
	full := s.draining.Load() || s.calls.Load() >= int64(s.limits.Calls) ||
		s.lookups.Load() >= int64(s.limits.Lookups) || waiting >= s.limits.QueueDepth/4 ||
		waiting > 64 && time.Duration(s.lag.Load()) > sickLag || !s.rate.Allow(now)
	if full && !s.urgent(p, now) {
		return refuseIt
	}
	sh.admit(mark)
	p.mark = mark
	return letIn
}

// urgentPerSecond bounds the urgent calls that are admitted although others are refused.
const urgentPerSecond = 50

// admitUrgent reports whether a call is urgent and is admitted in spite of overload.
func (s *Server) urgent(p *peeked, now time.Duration) bool {
	return s.config.Urgent != nil && s.config.Urgent(calledIn(p.line)) && s.urgents.Allow(now)
}

// calledUser returns the user part of the URI of a request line, without parsing the URI.
func calledIn(line string) string {
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
	s.out.send(m.replyFlow(), b)
}

// retryAfter returns the Retry-After line of a 503.
func (s *Server) retryAfter() string {
	seconds := int64((s.limits.RetryAfter + time.Second - 1) / time.Second)
	return string(appendInt([]byte("Retry-After: "), seconds)) + "\r\n"
}
