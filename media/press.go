package media

import (
	"context"
	"time"
)

// keysWaiting is how many keys may be on their way to a leg.
const keysWaiting = 32

// key is a digit that a leg's player is to send.
type key struct {
	code byte
	on   int // packets it lasts
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
	return s.enqueue(key{code, steps(d, 100*time.Millisecond)})
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
	off := steps(0, 60*time.Millisecond)
	step := func(p *player, n int) bool { return p.tones(k.code, n, k.on, off) }
	if p.s.TakesEvents() {
		step = func(p *player, n int) bool { return p.event(k.code, n, k.on, off) }
	}
	_ = p.perform(&job{ctx: context.Background(), step: step}) // it fails when the stream is closed: there is nobody to tell
}

// struck is a relayed digit and the leg that is to hear it as tones.
type struck struct {
	leg  *Stream
	code byte
}

// sound has a relayed digit said as tones, once for all packets of it. It is called on the packet loop: the player is
// told by somebody else. o.mu is held.
func (s *Stream) sound(from *Stream, h rtpHeader, code byte, now int64) {
	o := &s.out
	if !o.eventBegins(from, h, now) || int(code) >= len(digits) {
		return
	}
	select {
	case s.engine.struck <- struck{s, code}:
	default:
	}
}
