package media

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"time"
)

// startCheck starts a connectivity check of a pair and replaces one in progress.
func (a *iceAgent) startCheck(p *icePair, now int64, use bool) {
	_, _ = rand.Read(p.tx[:]) // never fails
	p.nominates, p.tries, p.nextSend = use, 0, now
	wakeUp(a.wake)
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
		timer.Reset(time.Duration(a.sendDue()))
	}
}

// stop ends run and waits for it.
func (a *iceAgent) stop() {
	close(a.quit)
	<-a.done
}

// sendDue sends the check that is due and returns the time until the next step, in ns.
func (a *iceAgent) sendDue() int64 {
	a.s.in.mu.Lock()
	defer a.s.in.mu.Unlock()
	now := a.s.engine.clock()
	a.checkConsent(now)
	var next *icePair
	for _, p := range a.pairs {
		if p.nextSend > 0 && (next == nil || p.nextSend < next.nextSend) {
			next = p
		}
	}
	if next == nil {
		return consentInterval
	}
	if next.nextSend <= now {
		a.sendCheck(next, now)
		return checkInterval
	}
	return max(checkInterval, next.nextSend-now)
}

// checkConsent repeats the check of the selected pair, and stops sending media when no response has come for 30 s
// (RFC 7675 §5.1).
func (a *iceAgent) checkConsent(now int64) {
	p := a.selected
	if p == nil {
		return
	}
	if p.nextSend == 0 && now-p.lastResponse >= consentInterval {
		a.startCheck(p, now, p.nominates)
	}
	if now-p.lastResponse > consentTimeout {
		a.s.out.setDestination(netip.AddrPort{})
	}
}

// sendCheck sends the check of a pair. It is repeated with growing intervals, because the other side may be slow or
// the packet lost.
func (a *iceAgent) sendCheck(p *icePair, now int64) {
	if p.tries++; p.tries > checkMaxTries && p != a.selected {
		p.nextSend = 0
		if p == a.nominating {
			a.nominating = nil
		}
		return
	}
	p.nextSend = now + checkFirstTimeout<<min(p.tries-1, 4)
	w := &a.out
	w.begin(stunRequest, p.tx)
	name := w.add(stunUsername, len(a.params.remoteUfrag)+1+len(a.params.ufrag))
	copy(name, a.params.remoteUfrag)
	name[len(a.params.remoteUfrag)] = ':'
	copy(name[len(a.params.remoteUfrag)+1:], a.params.ufrag)
	binary.BigEndian.PutUint32(w.add(stunPriority, 4), 110<<24|65535<<8|255) // RFC 8445 §7.1.1: as peer-reflexive
	role := uint16(stunControlled)
	p.controlling = a.params.controlling
	if p.controlling {
		role = stunControlling
	}
	binary.BigEndian.PutUint64(w.add(role, 8), a.params.tieBreaker)
	if p.nominates && a.params.controlling {
		w.add(stunUseCandidate, 0)
	}
	a.s.sendRaw(w.end(a.remoteMAC), p.remote)
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
		return bytes.HasPrefix(m.username, a.usernamePrefix) && m.authenticates(b, a.localMAC) && a.handleRequest(&m, from, now)
	case stunSuccess, stunError:
		return m.authenticates(b, a.remoteMAC) && a.handleResponse(&m, from, now)
	}
	return true // an indication only keeps NAT bindings open
}

// handleRequest answers a check and starts a triggered check in return (RFC 8445 §7.3).
func (a *iceAgent) handleRequest(m *stunMessage, from netip.AddrPort, now int64) bool {
	if a.resolveRoleConflict(m) {
		a.sendRoleConflict(m, from)
		return true
	}
	a.markProved(from)
	p := a.find(from)
	if p == nil {
		p = a.add(from, m.priority)
	}
	p.lastRequest = now
	a.out.begin(stunSuccess, m.tx)
	a.out.addXORMappedAddress(from)
	a.s.sendRaw(a.out.end(a.localMAC), from)
	if m.useCandidate && !a.params.controlling {
		p.remoteNominated = true
	}
	switch {
	case !p.valid && p.nextSend == 0:
		a.startCheck(p, now, false)
	case !p.valid:
		p.nextSend = now
		wakeUp(a.wake)
	case p.remoteNominated && m.useCandidate && p != a.selected && a.prefersPair(p, now):
		a.usePair(p, true)
	}
	return true
}

// resolveRoleConflict resolves a role conflict (RFC 8445 §7.3.1.1). It reports whether the other side must change
// its role; otherwise it changes ours if needed.
func (a *iceAgent) resolveRoleConflict(m *stunMessage) bool {
	both := a.params.controlling && m.controlling || !a.params.controlling && m.controlled
	if !both || a.params.remoteLite {
		return false
	}
	if a.params.controlling == (a.params.tieBreaker >= m.tieBreaker) {
		return true
	}
	a.params.controlling = !a.params.controlling
	return false
}

func (a *iceAgent) sendRoleConflict(m *stunMessage, to netip.AddrPort) {
	a.out.begin(stunError, m.tx)
	v := a.out.add(stunErrorCode, 4)
	v[2], v[3] = roleConflict/100, roleConflict%100
	a.s.sendRaw(a.out.end(a.localMAC), to)
}

// handleResponse handles the response to one of our checks (RFC 8445 §7.2.5).
func (a *iceAgent) handleResponse(m *stunMessage, from netip.AddrPort, now int64) bool {
	p := a.find(from)
	if p == nil || p.nextSend == 0 || p.tx != m.tx {
		return false
	}
	if m.kind == stunError {
		if m.code == roleConflict {
			a.params.controlling = !p.controlling
			a.startCheck(p, now, false)
		}
		return true
	}
	a.markProved(from)
	p.valid, p.lastResponse, p.nextSend = true, now, 0
	switch {
	case a.params.controlling && p.nominates:
		if p != a.selected {
			a.usePair(p, true)
		}
		a.nominating = nil
	case a.params.controlling:
		if a.selected == nil && a.nominating == nil {
			a.usePair(p, false)
			a.nominate(p, now)
		}
	case p.remoteNominated && p != a.selected && a.prefersPair(p, now):
		a.usePair(p, true)
	case a.selected == nil:
		a.usePair(p, false)
	}
	if p == a.selected {
		a.s.out.setDestination(p.remote) // consent may have expired in between
	}
	return true
}
