package media

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"time"

	"soniq/internal/protocol/media/stun"
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
	w.Begin(stun.Request, p.tx)
	name := w.Add(stun.Username, len(a.params.RemoteUfrag)+1+len(a.params.Ufrag))
	copy(name, a.params.RemoteUfrag)
	name[len(a.params.RemoteUfrag)] = ':'
	copy(name[len(a.params.RemoteUfrag)+1:], a.params.Ufrag)
	binary.BigEndian.PutUint32(w.Add(stun.Priority, 4), 110<<24|65535<<8|255) // RFC 8445 §7.1.1: as peer-reflexive
	role := uint16(stun.Controlled)
	p.controlling = a.params.Controlling
	if p.controlling {
		role = stun.Controlling
	}
	binary.BigEndian.PutUint64(w.Add(role, 8), a.params.TieBreaker)
	if p.nominates && a.params.Controlling {
		w.Add(stun.UseCandidate, 0)
	}
	a.s.sendRaw(w.End(a.remoteMAC), p.remote)
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
	m, ok := stun.Parse(b)
	if !ok {
		return false
	}
	switch m.Kind {
	case stun.Request:
		if !bytes.HasPrefix(m.Username, a.usernamePrefix) || !m.Authenticates(b, a.localMAC) {
			return false
		}
		a.handleRequest(&m, from, now)
		return true
	case stun.Success, stun.Error:
		return m.Authenticates(b, a.remoteMAC) && a.handleResponse(&m, from, now)
	}
	return true // an indication only keeps NAT bindings open
}

// handleRequest answers a check and starts a triggered check in return (RFC 8445 §7.3).
func (a *iceAgent) handleRequest(m *stun.Message, from netip.AddrPort, now int64) {
	if a.resolveRoleConflict(m) {
		a.sendRoleConflict(m, from)
		return
	}
	a.markProved(from)
	p := a.find(from)
	if p == nil {
		p = a.add(from, m.Priority)
	}
	p.lastRequest = now
	a.out.Begin(stun.Success, m.Tx)
	a.out.AddXORMappedAddress(from)
	a.s.sendRaw(a.out.End(a.localMAC), from)
	if m.UseCandidate && !a.params.Controlling {
		p.remoteNominated = true
	}
	switch {
	case !p.valid && p.nextSend == 0:
		a.startCheck(p, now, false)
	case !p.valid:
		p.nextSend = now
		wakeUp(a.wake)
	case p.remoteNominated && m.UseCandidate && p != a.selected && a.prefersPair(p, now):
		a.usePair(p, true)
	}
}

// resolveRoleConflict resolves a role conflict (RFC 8445 §7.3.1.1). It reports whether the other side must change
// its role; otherwise it changes ours if needed.
func (a *iceAgent) resolveRoleConflict(m *stun.Message) bool {
	both := a.params.Controlling && m.Controlling || !a.params.Controlling && m.Controlled
	if !both || a.params.RemoteLite {
		return false
	}
	if a.params.Controlling == (a.params.TieBreaker >= m.TieBreaker) {
		return true
	}
	a.params.Controlling = !a.params.Controlling
	return false
}

func (a *iceAgent) sendRoleConflict(m *stun.Message, to netip.AddrPort) {
	a.out.Begin(stun.Error, m.Tx)
	v := a.out.Add(stun.ErrorCode, 4)
	v[2], v[3] = stun.RoleConflict/100, stun.RoleConflict%100
	a.s.sendRaw(a.out.End(a.localMAC), to)
}

// handleResponse handles the response to one of our checks (RFC 8445 §7.2.5).
func (a *iceAgent) handleResponse(m *stun.Message, from netip.AddrPort, now int64) bool {
	p := a.find(from)
	if p == nil || p.nextSend == 0 || p.tx != m.Tx {
		return false
	}
	if m.Kind == stun.Error {
		if m.Code == stun.RoleConflict {
			a.params.Controlling = !p.controlling
			a.startCheck(p, now, false)
		}
		return true
	}
	a.markProved(from)
	p.valid, p.lastResponse, p.nextSend = true, now, 0
	switch {
	case a.params.Controlling && p.nominates:
		if p != a.selected {
			a.usePair(p, true)
		}
		a.nominating = nil
	case a.params.Controlling:
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
