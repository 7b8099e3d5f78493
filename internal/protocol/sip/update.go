package sip

import (
	"context"
	"errors"
	"strings"
)

// UPDATE (RFC 3311).

// ErrUpdateNotAllowed is returned if the peer does not allow UPDATE in the present state.
var ErrNoUpdate = errors.New("sip: the peer does not allow UPDATE")

// Update offers sdp by UPDATE (RFC 3311) and returns the answer. Before the call is answered it is the only way to
// make an offer, and only after the first offer was answered in a reliable provisional response. It fails with
// ErrUpdateNotAllowed if the peer does not allow UPDATE. 491 and refusals are handled as in Reinvite.
func (l *Leg) Update(ctx context.Context, sdp []byte) ([]byte, error) {
	return l.negotiate(ctx, func(done func(*message, error)) { l.sendUpdate(sdp, done) }, nil)
}

func (l *Leg) sendUpdate(sdp []byte, done func(*message, error)) {
	e := l.agreedEarly()
	switch {
	case l.over.Load() || l.state != legRinging && l.state != legConfirmed:
		done(nil, ErrOver)
		return
	case !l.updates || l.state == legRinging && !l.inbound && e == nil || l.state == legRinging && l.inbound && !l.agreed:
		done(nil, ErrNoUpdate)
		return
	case l.offering() || l.offered != nil || l.unacked != nil:
		done(nil, &StatusError{Method: "UPDATE", Status: 491, Reason: phrase(491)})
		return
	}
	o := outline{method: "UPDATE", contentType: sdpType, body: sdp, extra: l.shard.srv.able()}
	if e != nil {
		o.path, o.to = e.path, e.to
	}
	if l.state == legConfirmed {
		o.extra += l.session.fields()
	}
	l.updating, l.waiting = true, done
	judge := l.judge("UPDATE", done)
	l.transact(o, func(m *message, status int) {
		if status >= 200 {
			l.updating, l.waiting = false, nil
		}
		if m != nil && status >= 200 && status < 300 {
			l.retarget(m)
			l.say(sdp)
			l.hear(m.body)
			l.session.granted(m)
		}
		judge(m, status)
	})
}

// answeredEarlyDialog returns the early dialog of an outgoing call whose offer was answered, or nil.
func (l *Leg) agreedEarly() *early {
	if l.call == nil {
		return nil
	}
	for _, e := range l.call.early {
		if e.agreed {
			return e
		}
	}
	return nil
}

// handleUpdate handles an UPDATE (RFC 3311 §5.2). Without an offer it is answered here: it updates the target and
// refreshes the session.
func (l *Leg) updated(m *message) {
	s := l.shard
	grant, tooBrief := l.grant(m)
	e := l.early(m.from.tag)
	switch {
	case l.offered != nil:
		s.reply(m, 500, retryLater(m))
	case tooBrief:
		s.reply(m, 422, minSE)
	case m.body == "":
		l.refreshed(m, grant)
	case l.offering() || l.unacked != nil && l.unacked.late || e != nil && !e.agreed:
		s.reply(m, 491, "") // our offer is not answered
	case l.state == legRinging && l.inbound && !l.agreed, l.ackSeq > 0 && l.ack == nil:
		s.reply(m, 500, retryLater(m)) // the peer's offer is not answered
	default:
		l.retarget(m)
		l.learn(m)
		early := l.state == legRinging
		r := l.offer(m, Reinvite{Early: early})
		if !early {
			r.grant = grant
		}
	}
}

// answerRefreshUpdate answers an UPDATE without an offer.
func (l *Leg) refreshed(m *message, g grant) {
	l.retarget(m)
	l.learn(m)
	extra := "Contact: " + l.contact + "\r\n" + l.shard.srv.able()
	if l.state == legConfirmed || l.state == legAnswered {
		extra += g.fields()
		l.session.begin(g)
	}
	l.shard.reply(m, 200, extra)
}

// learnAllow records from Allow whether the peer supports UPDATE.
func (l *Leg) learn(m *message) {
	if allow := m.listNamed("Allow"); allow != nil {
		l.updates = contains(allow, "UPDATE")
	}
}

// hasOptionTag reports whether a field lists an option tag.
func (m *message) tagged(k fieldName, tag string) bool {
	for i := range m.fields {
		if m.fields[i].kind != k {
			continue
		}
		for rest := m.fields[i].value; rest != ""; {
			var v string
			v, rest = cutElement(rest)
			if strings.EqualFold(v, tag) {
				return true
			}
		}
	}
	return false
}
