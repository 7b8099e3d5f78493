package media

import (
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/rtp"
)

// Bridge relays each stream's audio and DTMF events to the other. It ends the bridges that either was part of, and
// opens both latch windows again. It is called when a call is answered, because phones often send nothing before.
//
// Packets pass without being decoded if the other leg supports their codec. One law of G.711 is converted to the
// other by a table. Other codecs are decoded, put in order and encoded again. DTMF events pass in all cases. Header
// extensions and CSRCs are removed.
func Bridge(a, b *Stream) {
	e := a.engine
	e.bridgeMu.Lock()
	defer e.bridgeMu.Unlock()
	a.leaveBridge()
	b.leaveBridge()
	a.setPeer(b)
	b.setPeer(a)
}

// Unbridge ends the bridge of s, and removes s from its mixer.
func (s *Stream) Unbridge() {
	s.engine.bridgeMu.Lock()
	defer s.engine.bridgeMu.Unlock()
	s.leaveBridge()
}

// Bridged returns the stream that s is bridged to, or nil.
func (s *Stream) Bridged() *Stream {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	return s.in.peer
}

func (s *Stream) setPeer(peer *Stream) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if s.in.closed {
		return
	}
	s.in.peer = peer
	s.in.latch.openWindow(s.engine.clock(), s.engine.cfg.Latch)
}

func (s *Stream) openLatchWindow() {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	s.in.latch.openWindow(s.engine.clock(), s.engine.cfg.Latch)
}

// leaveBridge removes s from its bridge and its mixer. The caller holds the engine's bridging lock.
func (s *Stream) leaveBridge() {
	s.stopTranscoding(s.Bridged())
	if m := s.mixer; m != nil {
		m.remove(s)
	}
	s.in.mu.Lock()
	peer := s.in.peer
	s.in.peer = nil
	s.in.mu.Unlock()
	if peer == nil {
		return
	}
	peer.in.mu.Lock()
	if peer.in.peer == s {
		peer.in.peer = nil
	}
	peer.in.mu.Unlock()
}

// relay sends a packet received by from to this leg. The payload b[begin:end] stays in place; the new header is
// written in front of it.
func (s *Stream) relay(from *Stream, h rtp.Header, k rtp.Kind, b []byte, begin, end int, now int64) {
	o := &s.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || !o.enabled || !o.to.IsValid() {
		return
	}
	if k.IsEvent() {
		s.relayEvent(from, h, k, b, begin, end, now)
		return
	}
	if o.muted {
		return
	}
	pt, toOtherLaw := o.pts[k], false
	if pt == noPT {
		if !k.IsG711() || o.pts[k^1] == noPT {
			s.engine.requestTranscoding(from)
			return
		}
		pt, toOtherLaw = o.pts[k^1], true
	}
	o.clock, o.relayedAt = uint32(k.Clock()), now
	if !o.mapPacket(from, &h, k, now) {
		return
	}
	if toOtherLaw {
		codec.TranscodeG711(b[begin:end], &codec.OtherLawOf[k])
	}
	h.PT = pt
	o.transmit(s.rtp, h, b[begin-rtp.HeaderLen:end], now)
}
