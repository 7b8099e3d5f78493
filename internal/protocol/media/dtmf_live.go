package media

import (
	"context"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/media/dtmf"
	"soniq/internal/protocol/media/rtp"
)

// maxQueuedDigits limits the digits that wait to be sent to a leg.
const maxQueuedDigits = 32

// dtmfKey is a digit for the player of a leg to send.
type dtmfKey struct {
	code    byte
	packets int       // duration in packets, at most
	live    *liveDTMF // while the digit is held down; nil: it lasts the given number of packets
}

// liveDTMF is a digit whose key is held down on another leg. It is sent to the listeners until its end arrives.
type liveDTMF struct {
	code     byte         // event code
	lastSeen atomic.Int64 // arrival of its latest packet
	packets  atomic.Int64 // its duration so far in packets of ours
	released atomic.Bool  // its end packet arrived
}

// liveDTMFTimeout ends a digit whose end packet was lost, in ns. It is the time of three packets, because phones send
// one every 20 to 50 ms.
const liveDTMFTimeout = int64(150 * time.Millisecond)

// update records the duration and the end flag of an event packet. before is the duration of the earlier segments.
func (h *liveDTMF) update(payload []byte, before uint32, clock int, now int64) {
	h.lastSeen.Store(now)
	h.packets.Store((int64(before) + int64(binary.BigEndian.Uint16(payload[2:]))) * 50 / int64(clock))
	if payload[1]&0x80 != 0 {
		h.released.Store(true)
	}
}

// endedBefore reports whether the digit ended before packet n of ours.
func (h *liveDTMF) endedBefore(n int, now int64) bool {
	return int64(n) >= h.packets.Load() && (h.released.Load() || now-h.lastSeen.Load() > liveDTMFTimeout)
}

// QueueDigit queues a digit behind the earlier ones and returns at once. It is sent as an RFC 4733 event, or as tones
// if the other side takes no events. Relayed, mixed and played audio is suppressed meanwhile. d is its duration, as
// in DTMFOptions. It returns false if digit is no DTMF digit, if the leg can be sent neither form now, or if the
// queue is full.
func (s *Stream) QueueDigit(digit rune, d time.Duration) bool {
	code, err := dtmf.Code(digit)
	if err != nil || !s.out.acceptsDigits(s.engine.clock()) {
		return false
	}
	return s.enqueueDigit(dtmfKey{code: code, packets: packetCount(d, 100*time.Millisecond)})
}

// QueueDigitToListeners calls QueueDigit on each leg that hears s in a Mixer. It returns false if there is none, or
// none of them accepts the digit now.
func (s *Stream) QueueDigitToListeners(digit rune, d time.Duration) bool {
	shared := false
	for _, ear := range s.listeners() {
		shared = ear.QueueDigit(digit, d) || shared
	}
	return shared
}

// listeners returns the legs that hear s in its mixer.
func (s *Stream) listeners() []*Stream {
	s.engine.bridgeMu.Lock()
	m := s.mixer
	s.engine.bridgeMu.Unlock()
	if m == nil {
		return nil
	}
	return m.listenersOf(s)
}

// listenersOf returns the members that hear the audio of s.
func (m *Mixer) listenersOf(s *Stream) (ears []*Stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.members {
		if slices.ContainsFunc(p.sources, func(q *mixerMember) bool { return q.stream == s }) {
			ears = append(ears, p.stream)
		}
	}
	return ears
}

// enqueueDigit queues a digit for the player. It returns false if the stream is closed or the queue is full.
func (s *Stream) enqueueDigit(k dtmfKey) bool {
	p := s.ensurePlayer()
	if p == nil {
		return false
	}
	select {
	case p.digits <- k:
		return true
	default: // full: digits cannot be sent that fast
		return false
	}
}

// acceptsDigits reports whether a digit can be sent to the other side now.
func (o *outbound) acceptsDigits(now int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	tones := o.pts[o.codec] != noPT && o.codec.CanEncode()
	return o.canSend(fromPlayer, now) && (tones || o.pts[rtp.KindEvent] != noPT || o.pts[rtp.KindEventOpus] != noPT)
}

// playDigit sends a queued digit.
func (p *player) playDigit(k dtmfKey) {
	off, send := packetCount(0, 60*time.Millisecond), p.sendTonePacket
	if p.s.TakesEvents() {
		send = p.sendEventPacket
	}
	step := func(p *player, n int) bool {
		if k.live != nil && n > 0 && n < k.packets-1 && k.live.endedBefore(n+1, p.s.engine.clock()) {
			k.packets = n + 1 // this is the last packet
		}
		return send(k.code, n, k.packets, off)
	}
	_ = p.runJob(&playJob{ctx: context.Background(), step: step}) // fails only when the stream is closed, which needs no report
}

// dtmfRequest asks the media worker to send the digit of a leg: to one leg, or, if to is nil, to its listeners in a
// mixer.
type dtmfRequest struct {
	to, from *Stream
	live     *liveDTMF
}

// dispatch queues the digit on its destinations.
func (k dtmfRequest) dispatch() {
	key := dtmfKey{code: k.live.code, packets: packetCount(6*time.Second, 0), live: k.live}
	if k.to != nil {
		k.to.enqueueDigit(key)
		return
	}
	for _, ear := range k.from.listeners() {
		if ear.out.acceptsDigits(ear.engine.clock()) {
			ear.enqueueDigit(key)
		}
	}
}

// requestDTMF lets the media worker send a digit to one leg, or to all listeners of s, because the packet loop must
// not wait. If the queue is full, the digit is dropped. The caller holds in.mu.
func (s *Stream) requestDTMF(ear *Stream, payload []byte, k rtp.Kind, now int64) {
	if int(payload[0]) >= len(dtmf.Digits) {
		return
	}
	if s.in.liveDTMF == nil {
		s.in.liveDTMF = &liveDTMF{code: payload[0]}
		s.in.liveDTMF.update(payload, s.in.key.Before, k.Clock(), now)
	}
	select {
	case s.engine.dtmfRequests <- dtmfRequest{to: ear, from: s, live: s.in.liveDTMF}:
	default:
	}
}

// relayEventAsTones has a relayed digit sent as tones, once for all of its packets. It runs on the packet loop. The
// caller holds o.mu.
func (s *Stream) relayEventAsTones(from *Stream, h rtp.Header, k rtp.Kind, payload []byte, now int64) {
	if s.out.isNewEvent(from, h, payload, now) {
		from.requestDTMF(s, payload, k, now)
	}
}
