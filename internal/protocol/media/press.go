package media

import (
	"context"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"
)

// keysWaiting is how many keys may be on their way to a leg.
const keysWaiting = 32

// key is a digit that a leg's player is to send.
type key struct {
	code byte
	on   int   // packets it lasts at most
	held *held // while it is held down; nil: it lasts on packets
}

// held is a key that somebody presses: those who hear it are sent it until it is let go.
type held struct {
	code byte         // of its event
	seen atomic.Int64 // when its latest packet came
	long atomic.Int64 // how many packets of ours it lasts so far
	let  atomic.Bool  // its end came
}

// heldGap is how long nothing comes of a key before it counts as let go although its end was not seen: the time of three
// packets, of which phones send one every 20 to 50 ms.
const heldGap = int64(150 * time.Millisecond)

// goesOn takes what a packet of its event tells.
func (h *held) goesOn(payload []byte, clock int, now int64) {
	h.seen.Store(now)
	h.long.Store(int64(binary.BigEndian.Uint16(payload[2:])) * 50 / int64(clock))
	if payload[1]&0x80 != 0 {
		h.let.Store(true)
	}
}

// over reports whether it was let go before packet n of ours.
func (h *held) over(n int, now int64) bool {
	return int64(n) >= h.long.Load() && (h.let.Load() || now-h.seen.Load() > heldGap)
}

// Press sends a digit behind those before it, as an RFC 4733 event or, where the
// other side takes none, as tones, and returns at once; relayed, mixed and played
// audio is held back meanwhile. d is how long it lasts, as in DTMFOptions. It
// reports false where it is no digit, or the leg can be sent neither now.
func (s *Stream) Press(digit rune, d time.Duration) bool {
	code, err := eventCode(digit)
	if err != nil || !s.out.hearsKeys(s.engine.clock()) {
		return false
	}
	return s.enqueue(key{code: code, on: steps(d, 100*time.Millisecond)})
}

// Share presses a digit, as Press does, on each leg that hears s in a Mixer. It
// reports false where that is none, or none of them can be sent it now.
func (s *Stream) Share(digit rune, d time.Duration) bool {
	shared := false
	for _, ear := range s.heardBy() {
		shared = ear.Press(digit, d) || shared
	}
	return shared
}

// heardBy are the legs that hear s in the mixer it is in.
func (s *Stream) heardBy() []*Stream {
	s.engine.bridging.Lock()
	m := s.mixer
	s.engine.bridging.Unlock()
	if m == nil {
		return nil
	}
	return m.hearing(s)
}

// hearing are the members that hear what s says.
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

// enqueue gives a key to the player, who sends it when those before it are sent.
func (s *Stream) enqueue(k key) bool {
	p := s.ensurePlayer()
	if p == nil {
		return false
	}
	select {
	case p.keys <- k:
		return true
	default: // nobody presses keys that fast
		return false
	}
}

// hearsKeys reports whether a digit can reach the other side now.
func (o *outbound) hearsKeys(now int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	tones := o.pts[o.codec] != noPT && o.codec.encodes()
	return o.ready(playing, now) && (tones || o.pts[kindEvent] != noPT || o.pts[kindEventOpus] != noPT)
}

// strike sends a key.
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
	_ = p.perform(&job{ctx: context.Background(), step: step}) // it fails when the stream is closed: there is nobody to tell
}

// struck is a key that is pressed at mouth: for ear, or where that is nil for those who hear mouth in a mixer.
type struck struct {
	ear, mouth *Stream
	held       *held
}

// tell sends the key to whom it is for.
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

// strike has a key told by somebody else than the packet loop, which must not wait: to ear, or to all who hear the leg. in.mu is held.
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

// sound has a relayed digit said as tones, once for all packets of it. It is called on the packet loop; o.mu is held.
func (s *Stream) sound(from *Stream, h rtpHeader, k kind, payload []byte, now int64) {
	if s.out.eventBegins(from, h, now) {
		from.strike(s, payload, k, now)
	}
}
