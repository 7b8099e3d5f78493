package media

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/media/srtp"
)

// applySecurity puts an agreement into force. If protection was agreed on, no unprotected packet passes from then on.
func (s *Stream) applySecurity(a *sdp.Agreement) {
	s.in.mu.Lock()
	s.in.protected = a.Security != sdp.Plain
	if !s.in.protected {
		s.in.decryptor = nil
	}
	s.in.mu.Unlock()
	s.out.mu.Lock()
	s.out.protected, s.out.mux = a.Security != sdp.Plain, a.Mux
	if !s.out.protected {
		s.out.encryptor = nil
	}
	s.out.mu.Unlock()
	if a.In.Valid() && a.Out.Valid() {
		s.setKeys(a.In, a.Out)
	}
}

// startICEAndDTLS starts ICE and DTLS if they were agreed on. Running ones continue if the agreement did not change.
func (s *Stream) startICEAndDTLS(a *sdp.Agreement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.setupICE(a)
	s.setupDTLS(a)
}

// setupICE starts, restarts or ends ICE. The caller holds s.mu.
func (s *Stream) setupICE(a *sdp.Agreement) {
	s.in.mu.Lock()
	old := s.in.ice
	switch {
	case a.ICE == nil:
		s.in.ice = nil
	case old == nil:
		s.in.ice = newICEAgent(s, *a.ICE)
		go s.in.ice.run()
	case a.ICE.Ufrag != old.params.Ufrag || a.ICE.RemoteUfrag != old.params.RemoteUfrag:
		old.start(*a.ICE)
	}
	s.in.mu.Unlock()
	if a.ICE == nil && old != nil {
		old.stop()
	}
}

// setupDTLS starts or ends DTLS. The caller holds s.mu.
func (s *Stream) setupDTLS(a *sdp.Agreement) {
	s.in.mu.Lock()
	old := s.in.dtls
	if old != nil && a.Security == sdp.WebRTC && old.matches(a) {
		s.in.mu.Unlock()
		return
	}
	s.in.dtls = nil
	s.in.mu.Unlock()
	if old != nil {
		old.stop()
	}
	if a.Security != sdp.WebRTC {
		return
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	var path <-chan struct{}
	if s.in.ice != nil {
		path = s.in.ice.ready
	}
	s.in.dtls = startDTLS(s, a, path)
}

// stopICEAndDTLS ends ICE and DTLS when the stream closes.
func (s *Stream) stopICEAndDTLS() {
	s.in.mu.Lock()
	agent, link := s.in.ice, s.in.dtls
	s.in.mu.Unlock()
	if link != nil {
		link.stop()
	}
	if agent != nil {
		agent.stop()
	}
}

// setKeys changes to the given SRTP keys. If they are in use already, nothing changes.
func (s *Stream) setKeys(in, out srtp.MasterKey) {
	now := s.engine.clock()
	s.in.mu.Lock()
	s.in.setKey(in, now)
	s.in.mu.Unlock()
	s.out.mu.Lock()
	s.out.setKey(out)
	s.out.mu.Unlock()
}

func (in *inbound) setKey(k srtp.MasterKey, now int64) {
	if in.decryptor == nil {
		in.decryptor, _ = srtp.NewDecryptor(k) // fails for keys of wrong length only, which our suites exclude
		return
	}
	if in.decryptor.Key != k {
		_ = in.decryptor.Rekey(k, in.rx.ssrc, now)
	}
}

// setKey changes the key. It also changes the SSRC, so that it does not matter whether the other side's roll-over
// counter continues or restarts (RFC 3711 §3.3.1). A key that comes back after plain RTP also gets another SSRC, because
// the indices of the old one were used.
func (o *outbound) setKey(k srtp.MasterKey) {
	if o.encryptor != nil && o.encryptor.Key == k {
		return
	}
	if o.sent.encrypted {
		o.ssrc, o.seq, o.mapped = rand.Uint32(), uint16(rand.Uint32())&0x7FFF, false
		*o.sent = sentNumbers{}
	}
	o.sent.encrypted = true
	o.encryptor, _ = srtp.NewEncryptor(k)
}

// encrypt encrypts a packet. It returns nil if there is no key yet.
func (o *outbound) encrypt(b []byte, report bool) []byte {
	if o.encryptor == nil {
		return nil
	}
	seal := o.encryptor.EncryptRTP
	if report {
		seal = o.encryptor.EncryptRTCP
	}
	if out, ok := seal(b); ok {
		return out
	}
	return nil
}

// decrypt decrypts and authenticates a packet of the leg. The caller holds in.mu.
func (s *Stream) decrypt(b []byte, report bool, now int64) ([]byte, bool) {
	o := s.in.decryptor
	if o == nil {
		return nil, false
	}
	if report {
		return o.DecryptRTCP(b)
	}
	return o.DecryptRTP(b, binary.BigEndian.Uint32(b[8:]), now)
}

// admitsSource reports whether RTP from this source may belong to the leg. The caller holds in.mu.
func (s *Stream) admitsSource(from netip.AddrPort, now int64) bool {
	if s.in.ice != nil {
		return s.in.ice.isProved(from)
	}
	return s.in.latch.admits(from, now)
}

// followSource sends media to the source of an accepted packet, unless ICE selects the address. The caller holds
// in.mu.
func (s *Stream) followSource(from netip.AddrPort, now int64) {
	if s.in.ice == nil && s.in.latch.follow(from, now) {
		s.out.redirect(from)
	}
}

// isReport reports whether a packet is RTCP. The payload type is not encrypted (RFC 5761 §4).
func isReport(b []byte) bool {
	pt := b[1] & 0x7F
	return pt >= 64 && pt < 96
}
