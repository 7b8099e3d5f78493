package media

import (
	"sync"
	"sync/atomic"
	"time"
)

// decodedReceiver decodes the audio that a leg sends: through a jitter buffer, 20 ms at a time, with its DTMF digits.
// Its goroutine ends with the stream. Its ticker runs only while packets arrive.
type ears struct {
	play  *playout    // filled by the packet loop
	wants atomic.Bool // OnAudio or OnAudioRate is in use
	tones atomic.Bool // OnDTMF is in use

	inband atomic.Bool // the leg sends digits as in-band tones
	narrow *resampler  // to 8 kHz; used by the goroutine only
	codes  chan byte
	wake   chan struct{}
	quit   chan struct{}
	done   chan struct{}

	mu    sync.Mutex // guards the fields below
	audio func([]int16)
	wide  func([]int16)
	digit func(rune)
	dtmf  *dtmfDetector
	other *resampler // to the rate of onWide
}

// OnAudio calls f with the audio of the leg at 8 kHz, 20 ms at a time, in order and with gaps concealed. f runs on a
// goroutine of the stream and must not close the stream. The slice is valid until f returns. f is not called while
// the leg sends nothing. A nil f ends the calls. If f is slow, packets are dropped after half a second.
func (s *Stream) OnAudio(f func(pcm []int16)) {
	s.listenWith(func(e *ears) { e.audio = f })
}

// OnAudioRate is OnAudio at another rate, 8000 to 48000 Hz. Both can be used at once.
func (s *Stream) OnAudioRate(rate int, f func(pcm []int16)) {
	s.listenWith(func(e *ears) { e.wide, e.other = f, newResampler(mixRate, rate) })
}

// OnDTMF calls f once per digit, when the digit begins, on the goroutine of OnAudio. It reports RFC 4733 events, and
// in-band tones of legs that did not negotiate events. A nil f ends the calls.
func (s *Stream) OnDTMF(f func(digit rune)) {
	s.listenWith(func(e *ears) { e.digit, e.dtmf = f, newDTMFDetector() })
}

// OnEvent calls f once per RFC 4733 digit, when the digit begins, on the packet loop. f must return at once and call
// nothing of this package. Unlike OnDTMF it costs nothing while no digit is sent. A nil f ends the calls.
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

// push queues an audio packet for decoding. It runs on the packet loop.
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

// pushDigit queues an event code. It runs on the packet loop and drops the code if the queue is full.
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
			for next = max(next, now-earsBehind); next <= now; next += frameTime { // a busy machine may skip ticks
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

// receiverMaxBehind is how far the callbacks may fall behind before audio is skipped, in ns.
const earsBehind = int64(400e6)

func (e *ears) pressed(code byte) {
	e.mu.Lock()
	digit := e.digit
	e.mu.Unlock()
	if d, ok := eventDigit(code); ok && digit != nil {
		digit(d)
	}
}

// deliver passes 20 ms of audio to the callbacks.
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
