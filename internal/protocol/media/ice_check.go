package media

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"time"
)

// startCheck starts a connectivity check of a pair and replaces one in progress.
func (a *iceAgent) check(p *icePair, now int64, use bool) {
	_, _ = rand.Read(p.tx[:]) // never fails
	p.use, p.tries, p.due = use, 0, now
	nudge(a.wake)
}

// run sends checks until stop is called.
func (a *iceAgent) run() {
	defer close(a.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-a.quit:
			return
		case <-a.wake:
		case <-timer.C:
		}
		timer.Reset(time.Duration(a.step()))
	}
}

// stop ends run and waits for it.
func (a *iceAgent) stop() {
	close(a.quit)
	<-a.done
}

// sendDue sends the check that is due and returns the time until the next step, in ns.
func (a *iceAgent) step() int64 {
	a.s.in.mu.Lock()
	defer a.s.in.mu.Unlock()
	now := a.s.engine.clock()
	a.consent(now)
	var next *icePair
	for _, p := range a.pairs {
		if p.due > 0 && (next == nil || p.due < next.due) {
			next = p
		}
	}
	if next == nil {
		return consentTime
	}
	if next.due <= now {
		a.send(next, now)
		return checkPace
	}
	return max(checkPace, next.due-now)
}

// checkConsent repeats the check of the selected pair, and stops sending media when no response has come for 30 s
// (RFC 7675 §5.1).
func (a *iceAgent) consent(now int64) {
	p := a.selected
	if p == nil {
		return
	}
	if p.due == 0 && now-p.confirmed >= consentTime {
		a.check(p, now, p.use)
	}
	if now-p.confirmed > consentEnd {
		a.s.out.route(netip.AddrPort{})
	}
}

// sendCheck sends the check of a pair. It is repeated with growing intervals, because the other side may be slow or
// the packet lost.
func (a *iceAgent) send(p *icePair, now int64) {
	if p.tries++; p.tries > checkTries && p != a.selected {
		p.due = 0
		if p == a.nominating {
			a.nominating = nil
		}
		return
	}
	p.due = now + checkFirst<<min(p.tries-1, 4)
	w := &a.out
	w.begin(stunRequest, p.tx)
	name := w.add(stunUsername, len(a.terms.theirUfrag)+1+len(a.terms.ufrag))
	copy(name, a.terms.theirUfrag)
	name[len(a.terms.theirUfrag)] = ':'
	copy(name[len(a.terms.theirUfrag)+1:], a.terms.ufrag)
	binary.BigEndian.PutUint32(w.add(stunPriority, 4), 110<<24|65535<<8|255) // RFC 8445 §7.1.1: as peer-reflexive
	role := uint16(stunControlled)
	p.controlling = a.terms.controlling
	if p.controlling {
		role = stunControlling
	}
	binary.BigEndian.PutUint64(w.add(role, 8), a.terms.tieBreaker)
	if p.use && a.terms.controlling {
		w.add(stunUseCandidate, 0)
	}
	a.s.sendRaw(w.end(a.theirs), p.remote)
}

// sendRaw sends a packet that is neither RTP nor RTCP. It does nothing if the stream is closed or to is invalid.
func (s *Stream) sendRaw(b []byte, to netip.AddrPort) {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	if !s.out.closed && to.IsValid() {
		s.rtp.send(b, to)
	}
}

// receive handles a STUN message on the packet loop. The caller holds in.mu. It returns false if the message is
// malformed, not authenticated or unexpected.
func (a *iceAgent) receive(b []byte, from netip.AddrPort, now int64) bool {
	m, ok := parseSTUN(b)
	if !ok {
		return false
	}
	switch m.kind {
	case stunRequest:
		return bytes.HasPrefix(m.username, a.name) && m.proves(b, a.ours) && a.request(&m, from, now)
	case stunSuccess, stunError:
		return m.proves(b, a.theirs) && a.response(&m, from, now)
	}
	return true // an indication only keeps NAT bindings open
}

// handleRequest answers a check and starts a triggered check in return (RFC 8445 §7.3).
func (a *iceAgent) request(m *stunMessage, from netip.AddrPort, now int64) bool {
	if a.conflict(m) {
		a.refuse(m, from)
		return true
	}
	a.proved(from)
	p := a.find(from)
	if p == nil {
		p = a.add(from, m.priority)
	}
	p.heard = now
	a.out.begin(stunSuccess, m.tx)
	a.out.mapped(from)
	a.s.sendRaw(a.out.end(a.ours), from)
	if m.use && !a.terms.controlling {
		p.asked = true
	}
	switch {
	case !p.valid && p.due == 0:
		a.check(p, now, false)
	case !p.valid:
		p.due = now
		nudge(a.wake)
	case p.asked && m.use && p != a.selected && a.prefers(p, now):
		a.use(p, true)
	}
	return true
}

// resolveRoleConflict resolves a role conflict (RFC 8445 §7.3.1.1). It reports whether the other side must change
// its role; otherwise it changes ours if needed.
func (a *iceAgent) conflict(m *stunMessage) bool {
	both := a.terms.controlling && m.controlling || !a.terms.controlling && m.controlled
	if !both || a.terms.lite {
		return false
	}
	if a.terms.controlling == (a.terms.tieBreaker >= m.tieBreaker) {
		return true
	}
	a.terms.controlling = !a.terms.controlling
	return false
}

func (a *iceAgent) refuse(m *stunMessage, to netip.AddrPort) {
	a.out.begin(stunError, m.tx)
	v := a.out.add(stunErrorCode, 4)
	v[2], v[3] = roleConflict/100, roleConflict%100
	a.s.sendRaw(a.out.end(a.ours), to)
}

// handleResponse handles the response to one of our checks (RFC 8445 §7.2.5).
func (a *iceAgent) response(m *stunMessage, from netip.AddrPort, now int64) bool {
	p := a.find(from)
	if p == nil || p.due == 0 || p.tx != m.tx {
		return false
	}
	if m.kind == stunError {
		if m.code == roleConflict {
			a.terms.controlling = !p.controlling
			a.check(p, now, false)
		}
		return true
	}
	a.proved(from)
	p.valid, p.confirmed, p.due = true, now, 0
	switch {
	case a.terms.controlling && p.use:
		if p != a.selected {
			a.use(p, true)
		}
		a.nominating = nil
	case a.terms.controlling:
		if a.selected == nil && a.nominating == nil {
			a.use(p, false)
			a.nominate(p, now)
		}
	case p.asked && p != a.selected && a.prefers(p, now):
		a.use(p, true)
	case a.selected == nil:
		a.use(p, false)
	}
	if p == a.selected {
		a.s.out.route(p.remote) // consent may have expired in between
	}
	return true
}
