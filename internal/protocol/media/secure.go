package media

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
)

// applySecurity puts an agreement into force. If protection was agreed on, no unprotected packet passes from then on.
func (s *Stream) protect(a *agreement) {
	s.in.mu.Lock()
	s.in.protected = a.security != Plain
	if !s.in.protected {
		s.in.opener = nil
	}
	s.in.mu.Unlock()
	s.out.mu.Lock()
	s.out.protected, s.out.mux = a.security != Plain, a.mux
	if !s.out.protected {
		s.out.sealer = nil
	}
	s.out.mu.Unlock()
	if a.in.valid() && a.out.valid() {
		s.setKeys(a.in, a.out)
	}
}

// startICEAndDTLS starts ICE and DTLS if they were agreed on. Running ones continue if the agreement did not change.
func (s *Stream) meet(a *agreement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.findWay(a)
	s.shakeHands(a)
}

// setupICE starts, restarts or ends ICE. The caller holds s.mu.
func (s *Stream) findWay(a *agreement) {
	s.in.mu.Lock()
	old := s.in.ice
	switch {
	case a.ice == nil:
		s.in.ice = nil
	case old == nil:
		s.in.ice = newICEAgent(s, *a.ice)
		go s.in.ice.run()
	case a.ice.ufrag != old.terms.ufrag || a.ice.theirUfrag != old.terms.theirUfrag:
		old.begin(*a.ice)
	}
	s.in.mu.Unlock()
	if a.ice == nil && old != nil {
		old.stop()
	}
}

// setupDTLS starts or ends DTLS. The caller holds s.mu.
func (s *Stream) shakeHands(a *agreement) {
	s.in.mu.Lock()
	old := s.in.link
	if old != nil && a.security == WebRTC && old.serves(a) {
		s.in.mu.Unlock()
		return
	}
	s.in.link = nil
	s.in.mu.Unlock()
	if old != nil {
		old.stop()
	}
	if a.security != WebRTC {
		return
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	var path <-chan struct{}
	if s.in.ice != nil {
		path = s.in.ice.ready
	}
	s.in.link = startDTLS(s, a, path)
}

// stopICEAndDTLS ends ICE and DTLS when the stream closes.
func (s *Stream) unprotect() {
	s.in.mu.Lock()
	agent, link := s.in.ice, s.in.link
	s.in.mu.Unlock()
	if link != nil {
		link.stop()
	}
	if agent != nil {
		agent.stop()
	}
}

// setKeys changes to the given SRTP keys. If they are in use already, nothing changes.
func (s *Stream) setKeys(in, out masterKey) {
	now := s.engine.clock()
	s.in.mu.Lock()
	s.in.setKey(in, now)
	s.in.mu.Unlock()
	s.out.mu.Lock()
	s.out.setKey(out)
	s.out.mu.Unlock()
}

func (in *inbound) setKey(k masterKey, now int64) {
	if in.opener == nil {
		in.opener, _ = newOpener(k) // fails for keys of wrong length only, which our suites exclude
		return
	}
	if in.opener.key != k {
		_ = in.opener.rekey(k, in.rx.ssrc, now)
	}
}

// setKey changes the key. It also changes the SSRC, so that it does not matter whether the other side's roll-over
// counter continues or restarts (RFC 3711 §3.3.1).
func (o *outbound) setKey(k masterKey) {
	if o.sealer != nil && o.sealer.key == k {
		return
	}
	if o.sealer != nil {
		o.ssrc, o.seq, o.mapped = rand.Uint32(), uint16(rand.Uint32())&0x7FFF, false
	}
	o.sealer, _ = newSealer(k)
}

// encrypt encrypts a packet. It returns nil if there is no key yet.
func (o *outbound) seal(b []byte, report bool) []byte {
	if o.sealer == nil {
		return nil
	}
	seal := o.sealer.rtp
	if report {
		seal = o.sealer.rtcp
	}
	if out, ok := seal(b); ok {
		return out
	}
	return nil
}

// decrypt decrypts and authenticates a packet of the leg. The caller holds in.mu.
func (s *Stream) open(b []byte, report bool, now int64) ([]byte, bool) {
	o := s.in.opener
	if o == nil {
		return nil, false
	}
	if report {
		return o.rtcp(b)
	}
	return o.rtp(b, binary.BigEndian.Uint32(b[8:]), now)
}

// admitsSource reports whether RTP from this source may belong to the leg. The caller holds in.mu.
func (s *Stream) admits(from netip.AddrPort, now int64) bool {
	if s.in.ice != nil {
		return s.in.ice.knows(from)
	}
	return s.in.latch.admits(from, now)
}

// followSource sends media to the source of an accepted packet, unless ICE selects the address. The caller holds
// in.mu.
func (s *Stream) follow(from netip.AddrPort, now int64) {
	if s.in.ice == nil && s.in.latch.take(from, now) {
		s.out.redirect(from)
	}
}

// isReport reports whether a packet is RTCP. The payload type is not encrypted (RFC 5761 §4).
func isReport(b []byte) bool {
	pt := b[1] & 0x7F
	return pt >= 64 && pt < 96
}
