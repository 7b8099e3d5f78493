package media

import (
	"context"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"
)

// maxQueuedDigits limits the digits that wait to be sent to a leg.
const keysWaiting = 32

// dtmfKey is a digit for the player of a leg to send.
type key struct {
	code byte
	on   int   // duration in packets, at most
	held *held // while the digit is held down; nil: it lasts the given number of packets
}

// liveDTMF is a digit whose key is held down on another leg. It is sent to the listeners until its end arrives.
type held struct {
	code byte         // event code
	seen atomic.Int64 // arrival of its latest packet
	long atomic.Int64 // its duration so far in packets of ours
	let  atomic.Bool  // its end packet arrived
}

// liveDTMFTimeout ends a digit whose end packet was lost, in ns. It is the time of three packets, because phones send
// one every 20 to 50 ms.
const heldGap = int64(150 * time.Millisecond)

// update records the duration and the end flag of an event packet.
func (h *held) goesOn(payload []byte, clock int, now int64) {
	h.seen.Store(now)
	h.long.Store(int64(binary.BigEndian.Uint16(payload[2:])) * 50 / int64(clock))
	if payload[1]&0x80 != 0 {
		h.let.Store(true)
	}
}

// endedBefore reports whether the digit ended before packet n of ours.
func (h *held) over(n int, now int64) bool {
	return int64(n) >= h.long.Load() && (h.let.Load() || now-h.seen.Load() > heldGap)
}

// QueueDigit queues a digit behind the earlier ones and returns at once. It is sent as an RFC 4733 event, or as tones
// if the other side takes no events. Relayed, mixed and played audio is suppressed meanwhile. d is its duration, as
// in DTMFOptions. It returns false if digit is no DTMF digit, if the leg can be sent neither form now, or if the
// queue is full.
func (s *Stream) Press(digit rune, d time.Duration) bool {
	code, err := eventCode(digit)
	if err != nil || !s.out.hearsKeys(s.engine.clock()) {
		return false
	}
	return s.enqueue(key{code: code, on: steps(d, 100*time.Millisecond)})
}

// QueueDigitToListeners calls QueueDigit on each leg that hears s in a Mixer. It returns false if there is none, or
// none of them accepts the digit now.
func (s *Stream) Share(digit rune, d time.Duration) bool {
	shared := false
	for _, ear := range s.heardBy() {
		shared = ear.Press(digit, d) || shared
	}
	return shared
}

// listeners returns the legs that hear s in its mixer.
func (s *Stream) heardBy() []*Stream {
	s.engine.bridging.Lock()
	m := s.mixer
	s.engine.bridging.Unlock()
	if m == nil {
		return nil
	}
	return m.hearing(s)
}

// listenersOf returns the members that hear the audio of s.
func (m *Mixer) hearing(s *Stream) (ears []*Stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.members {
		if slices.ContainsFunc(p.hears, func(q *member) bool { return q.stream == s }) {
			ears = append(ears, p.stream)
		}
	}
	return ears
}

// enqueueDigit queues a digit for the player. It returns false if the stream is closed or the queue is full.
func (s *Stream) enqueue(k key) bool {
	p := s.ensurePlayer()
	if p == nil {
		return false
	}
	select {
	case p.keys <- k:
		return true
	default: // full: digits cannot be sent that fast
		return false
	}
}

// acceptsDigits reports whether a digit can be sent to the other side now.
func (o *outbound) hearsKeys(now int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	tones := o.pts[o.codec] != noPT && o.codec.encodes()
	return o.ready(playing, now) && (tones || o.pts[kindEvent] != noPT || o.pts[kindEventOpus] != noPT)
}

// playDigit sends a queued digit.
func (p *player) strike(k key) {
	off, send := steps(0, 60*time.Millisecond), p.tones
	if p.s.TakesEvents() {
		send = p.event
	}
	step := func(p *player, n int) bool {
		if k.held != nil && n > 0 && n < k.on-1 && k.held.over(n+1, p.s.engine.clock()) {
			k.on = n + 1 // this is the last packet
		}
		return send(k.code, n, k.on, off)
	}
	_ = p.perform(&job{ctx: context.Background(), step: step}) // fails only when the stream is closed, which needs no report
}

// dtmfRequest asks the media worker to send the digit of a leg: to one leg, or, if to is nil, to its listeners in a
// mixer.
type struck struct {
	ear, mouth *Stream
	held       *held
}

// dispatch queues the digit on its destinations.
func (k struck) tell() {
	key := key{code: k.held.code, on: steps(6*time.Second, 0), held: k.held}
	if k.ear != nil {
		k.ear.enqueue(key)
		return
	}
	for _, ear := range k.mouth.heardBy() {
		if ear.out.hearsKeys(ear.engine.clock()) {
			ear.enqueue(key)
		}
	}
}

// requestDTMF lets the media worker send a digit to one leg, or to all listeners of s, because the packet loop must
// not wait. If the queue is full, the digit is dropped. The caller holds in.mu.
func (s *Stream) strike(ear *Stream, payload []byte, k kind, now int64) {
	if int(payload[0]) >= len(digits) {
		return
	}
	if s.in.held == nil {
		s.in.held = &held{code: payload[0]}
		s.in.held.goesOn(payload, k.clock(), now)
	}
	select {
	case s.engine.struck <- struck{ear: ear, mouth: s, held: s.in.held}:
	default:
	}
}

// relayEventAsTones has a relayed digit sent as tones, once for all of its packets. It runs on the packet loop. The
// caller holds o.mu.
func (s *Stream) sound(from *Stream, h rtpHeader, k kind, payload []byte, now int64) {
	if s.out.eventBegins(from, h, now) {
		from.strike(s, payload, k, now)
	}
}
