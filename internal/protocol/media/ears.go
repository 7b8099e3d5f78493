package media

import (
	"sync"
	"sync/atomic"
	"time"
)

// ears is the decoded receiving side of a stream: what the leg says through a
// jitter buffer, 20 ms at a time, and its digits. Its goroutine ends with the
// stream and has a clock only while packets come.
type ears struct {
	play  *playout    // pushed to by the packet loop
	wants atomic.Bool // somebody listens to sound
	tones atomic.Bool // somebody listens to digits

	inband atomic.Bool // the leg sends digits as sound
	narrow *resampler  // to 8 kHz; the goroutine's
	codes  chan byte
	wake   chan struct{}
	quit   chan struct{}
	done   chan struct{}

	mu    sync.Mutex // guards all below
	audio func([]int16)
	wide  func([]int16)
	digit func(rune)
	dtmf  *dtmfDetector
	other *resampler // to the rate of wide
}

// OnAudio calls f with what the leg says at 8 kHz, 20 ms at a time, in order and
// with gaps filled, from one goroutine of the stream; f must not Close it. The
// slice is valid until f returns. f is not called while the leg sends nothing.
// nil stops it. A slow f loses packets after half a second.
func (s *Stream) OnAudio(f func(pcm []int16)) {
	s.listenWith(func(e *ears) { e.audio = f })
}

// OnAudioRate is OnAudio at another rate, 8000 to 48000 Hz; both can be in use.
func (s *Stream) OnAudioRate(rate int, f func(pcm []int16)) {
	s.listenWith(func(e *ears) { e.wide, e.other = f, newResampler(mixRate, rate) })
}

// OnDTMF calls f once per digit, when it begins, from the goroutine of OnAudio:
// RFC 4733 events, and the tones of legs that have not negotiated events. nil stops it.
func (s *Stream) OnDTMF(f func(digit rune)) {
	s.listenWith(func(e *ears) { e.digit, e.dtmf = f, newDTMFDetector() })
}

// OnEvent calls f once per RFC 4733 digit, when it begins, on the packet loop: f must return at once and call nothing of this
// package. It costs nothing while nobody presses a key, which OnDTMF does. nil stops it.
func (s *Stream) OnEvent(f func(digit rune)) {
	s.in.mu.Lock()
	s.in.pressed = f
	s.in.mu.Unlock()
}

func (s *Stream) listenWith(set func(*ears)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.ears == nil {
		s.ears = &ears{play: newPlayout(mixRate), codes: make(chan byte, 32), wake: make(chan struct{}, 1),
			narrow: newResampler(mixRate, 8000), quit: make(chan struct{}), done: make(chan struct{})}
		go s.ears.run(s.engine.clock)
	}
	s.ears.mu.Lock()
	set(s.ears)
	s.ears.wants.Store(s.ears.audio != nil || s.ears.wide != nil)
	s.ears.tones.Store(s.ears.digit != nil)
	s.ears.mu.Unlock()
	s.in.mu.Lock()
	s.in.ears = s.ears
	s.in.mu.Unlock()
}

// hear is called on the packet loop.
func (e *ears) hear(h rtpHeader, k kind, payload []byte, now int64, tones bool) {
	if !e.wants.Load() && !(tones && e.tones.Load()) {
		return
	}
	if e.inband.Load() != tones {
		e.inband.Store(tones)
	}
	if e.play.ring.push(h, k, payload, now) {
		nudge(e.wake)
	}
}

// press is called on the packet loop.
func (e *ears) press(code byte) {
	select {
	case e.codes <- code:
	default:
	}
}

func (e *ears) run(clock func() int64) {
	defer close(e.done)
	tick := time.NewTicker(packetTime)
	tick.Stop()
	wake, next := e.wake, int64(0)
	pcm, out := make([]int16, mixRate/50), make([]int16, 0, 48000/50)
	for {
		select {
		case <-e.quit:
			return
		case c := <-e.codes:
			e.pressed(c)
		case <-wake:
			tick.Reset(packetTime)
			wake, next = nil, clock()
		case <-tick.C:
			now := clock()
			for next = max(next, now-earsBehind); next <= now; next += frameTime { // ticks may be left out on a busy machine
				if !e.play.pull(pcm, next) {
					tick.Stop()
					wake = e.wake
					break
				}
				out = e.tell(pcm, out)
			}
		}
	}
}

// earsBehind is how much a listener may fall behind before sound is left out, in ns.
const earsBehind = int64(400e6)

func (e *ears) pressed(code byte) {
	e.mu.Lock()
	digit := e.digit
	e.mu.Unlock()
	if d, ok := eventDigit(code); ok && digit != nil {
		digit(d)
	}
}

// tell gives 20 ms to who listens.
func (e *ears) tell(pcm, out []int16) []int16 {
	e.mu.Lock()
	audio, wide, other, digit, dtmf := e.audio, e.wide, e.other, e.digit, e.dtmf
	e.mu.Unlock()
	out = e.narrow.process(out[:0], pcm)
	if audio != nil {
		audio(out)
	}
	if digit != nil && e.inband.Load() {
		dtmf.hear(out, digit)
	}
	if wide != nil {
		out = other.process(out[:0], pcm)
		wide(out)
	}
	return out
}

func (e *ears) stop() {
	close(e.quit)
	<-e.done
}
