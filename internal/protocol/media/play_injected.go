package media

import (
	"sync"

	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/dsp"
)

// maxInjectedAudio limits the unplayed audio of an InjectedAudio, in samples: three minutes.
const maxInjectedAudio = 180 * clip.Rate

// An InjectedAudio is audio that is played while it is produced, such as speech synthesis. It is safe for concurrent
// use.
type InjectedAudio struct {
	mu        sync.Mutex // guards the fields below
	resampler *dsp.Resampler
	pcm       []int16 // at clip.Rate; the samples from at on are still to be played
	position  int
	ended     bool
}

// NewInjectedAudio returns an InjectedAudio for mono samples at a rate from 8000 to 48000 Hz.
func NewInjectedAudio(rate int) *InjectedAudio {
	return &InjectedAudio{resampler: dsp.NewResampler(rate, clip.Rate)}
}

// Write appends audio. It drops pcm if three minutes or more are still unplayed, or after End.
func (f *InjectedAudio) Write(pcm []int16) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || len(f.pcm)-f.position >= maxInjectedAudio {
		return
	}
	if f.position > clip.Rate { // removes played samples, a second at a time
		f.pcm = append(f.pcm[:0], f.pcm[f.position:]...)
		f.position = 0
	}
	f.pcm = f.resampler.Process(f.pcm, pcm)
}

// End marks the end of the audio. The playback is done once everything was played.
func (f *InjectedAudio) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.resampler; r != nil && !f.ended { // flushes the last samples out of the filter
		f.pcm = r.Process(f.pcm, make([]int16, r.Taps/2))
	}
	f.ended = true
}

// read copies the next n samples to dst. piece is empty while too few samples are available. more is false at the
// end.
func (f *InjectedAudio) read(dst []int16, n int) (piece []int16, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := len(f.pcm) - f.position
	if left < n && !f.ended {
		return dst, true
	}
	k := min(n, left)
	dst = append(dst, f.pcm[f.position:f.position+k]...)
	f.position += k
	return dst, k > 0
}

// PlayInjected plays audio while it is produced. It sends silence while no audio is available; Played does not count
// that silence.
func (s *Stream) PlayInjected(f *InjectedAudio) *Playback {
	b := &Playback{player: s.ensurePlayer(), injected: f, buf: make([]int16, 0, clip.Rate/50), done: make(chan struct{})}
	if b.player == nil {
		b.finish()
		return b
	}
	b.player.startPlayback(b)
	return b
}

// nextInjected returns the next 20 ms of injected audio, or nil after its end.
func (b *Playback) nextInjected() []int16 {
	const n = clip.Rate / 50
	var more bool
	if b.buf, more = b.injected.read(b.buf[:0], n); !more {
		return nil
	}
	if len(b.buf) == 0 {
		b.buf = b.buf[:n]
		clear(b.buf)
		return b.buf
	}
	b.sentSamples.Add(int64(len(b.buf)))
	return b.buf
}
