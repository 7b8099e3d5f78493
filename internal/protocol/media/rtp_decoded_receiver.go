package media

import (
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/dtmf"
	"soniq/internal/protocol/media/rtp"
)

// decodedReceiver decodes the audio that a leg sends: through a jitter buffer, 20 ms at a time, with its DTMF digits.
// Its goroutine ends with the stream. Its ticker runs only while packets arrive.
type decodedReceiver struct {
	jitter      *rtp.JitterBuffer // filled by the packet loop
	wantsAudio  atomic.Bool       // OnAudio or OnAudioRate is in use
	wantsDigits atomic.Bool       // OnDTMF is in use

	inbandDTMF atomic.Bool    // the leg sends digits as in-band tones
	to8kHz     *dsp.Resampler // to 8 kHz; used by the goroutine only
	eventCodes chan byte
	wake       chan struct{}
	quit       chan struct{}
	done       chan struct{}

	mu          sync.Mutex // guards the fields below
	onAudio     func([]int16)
	onWideAudio func([]int16)
	onDigit     func(rune)
	detector    *dtmf.Detector
	toWideRate  *dsp.Resampler // to the rate of onWide
}

// OnAudio calls f with the audio of the leg at 8 kHz, 20 ms at a time, in order and with gaps concealed. f runs on a
// goroutine of the stream and must not close the stream. The slice is valid until f returns. f is not called while
// the leg sends nothing. A nil f ends the calls. If f is slow, packets are dropped after half a second.
func (s *Stream) OnAudio(f func(pcm []int16)) {
	s.configureReceiver(func(e *decodedReceiver) { e.onAudio = f })
}

// OnAudioRate is OnAudio at another rate, 8000 to 48000 Hz. Both can be used at once.
func (s *Stream) OnAudioRate(rate int, f func(pcm []int16)) {
	s.configureReceiver(func(e *decodedReceiver) { e.onWideAudio, e.toWideRate = f, dsp.NewResampler(mixRate, rate) })
}

// OnDTMF calls f once per digit, when the digit begins, on the goroutine of OnAudio. It reports RFC 4733 events, and
// in-band tones of legs that did not negotiate events. A nil f ends the calls.
func (s *Stream) OnDTMF(f func(digit rune)) {
	s.configureReceiver(func(e *decodedReceiver) { e.onDigit, e.detector = f, dtmf.NewDetector() })
}

// OnEvent calls f once per RFC 4733 digit, when the digit begins, on the packet loop. f must return at once and call
// nothing of this package. Unlike OnDTMF it costs nothing while no digit is sent. A nil f ends the calls.
func (s *Stream) OnEvent(f func(digit rune)) {
	s.in.mu.Lock()
	s.in.onEvent = f
	s.in.mu.Unlock()
}

func (s *Stream) configureReceiver(set func(*decodedReceiver)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.decoded == nil {
		s.decoded = &decodedReceiver{jitter: rtp.NewJitterBuffer(mixRate), eventCodes: make(chan byte, 32), wake: make(chan struct{}, 1),
			to8kHz: dsp.NewResampler(mixRate, 8000), quit: make(chan struct{}), done: make(chan struct{})}
		go s.decoded.run(s.engine.clock)
	}
	s.decoded.mu.Lock()
	set(s.decoded)
	s.decoded.wantsAudio.Store(s.decoded.onAudio != nil || s.decoded.onWideAudio != nil)
	s.decoded.wantsDigits.Store(s.decoded.onDigit != nil)
	s.decoded.mu.Unlock()
	s.in.mu.Lock()
	s.in.decoded = s.decoded
	s.in.mu.Unlock()
}

// push queues an audio packet for decoding. It runs on the packet loop.
func (e *decodedReceiver) push(h rtp.Header, k rtp.Kind, payload []byte, now int64, tones bool) {
	if !e.wantsAudio.Load() && !(tones && e.wantsDigits.Load()) {
		return
	}
	if e.inbandDTMF.Load() != tones {
		e.inbandDTMF.Store(tones)
	}
	if e.jitter.Ring.Push(h, k, payload, now) {
		wakeUp(e.wake)
	}
}

// pushDigit queues an event code. It runs on the packet loop and drops the code if the queue is full.
func (e *decodedReceiver) pushDigit(code byte) {
	select {
	case e.eventCodes <- code:
	default:
	}
}

func (e *decodedReceiver) run(clock func() int64) {
	defer close(e.done)
	tick := time.NewTicker(packetTime)
	tick.Stop()
	wake, next := e.wake, int64(0)
	pcm, out := make([]int16, mixRate/50), make([]int16, 0, 48000/50)
	for {
		select {
		case <-e.quit:
			return
		case c := <-e.eventCodes:
			e.deliverDigit(c)
		case <-wake:
			tick.Reset(packetTime)
			wake, next = nil, clock()
		case <-tick.C:
			now := clock()
			for next = max(next, now-receiverMaxBehind); next <= now; next += rtp.FrameTime { // a busy machine may skip ticks
				if !e.jitter.Pull(pcm, next) {
					tick.Stop()
					wake = e.wake
					break
				}
				out = e.deliver(pcm, out)
			}
		}
	}
}

// receiverMaxBehind is how far the callbacks may fall behind before audio is skipped, in ns.
const receiverMaxBehind = int64(400e6)

func (e *decodedReceiver) deliverDigit(code byte) {
	e.mu.Lock()
	digit := e.onDigit
	e.mu.Unlock()
	if d, ok := dtmf.Digit(code); ok && digit != nil {
		digit(d)
	}
}

// deliver passes 20 ms of audio to the callbacks.
func (e *decodedReceiver) deliver(pcm, out []int16) []int16 {
	e.mu.Lock()
	audio, wide, other, digit, dtmf := e.onAudio, e.onWideAudio, e.toWideRate, e.onDigit, e.detector
	e.mu.Unlock()
	out = e.to8kHz.Process(out[:0], pcm)
	if audio != nil {
		audio(out)
	}
	if digit != nil && e.inbandDTMF.Load() {
		dtmf.Detect(out, digit)
	}
	if wide != nil {
		out = other.Process(out[:0], pcm)
		wide(out)
	}
	return out
}

func (e *decodedReceiver) stop() {
	close(e.quit)
	<-e.done
}
