package media

import "sync"

// maxInjectedAudio limits the unplayed audio of an InjectedAudio, in samples: three minutes.
const feedMost = 180 * clipRate

// An InjectedAudio is audio that is played while it is produced, such as speech synthesis. It is safe for concurrent
// use.
type Feed struct {
	mu       sync.Mutex // guards the fields below
	resample *resampler
	pcm      []int16 // at clipRate; the samples from at on are still to be played
	at       int
	ended    bool
}

// NewInjectedAudio returns an InjectedAudio for mono samples at a rate from 8000 to 48000 Hz.
func NewFeed(rate int) *Feed { return &Feed{resample: newResampler(rate, clipRate)} }

// Write appends audio. It drops pcm if three minutes or more are still unplayed, or after End.
func (f *Feed) Write(pcm []int16) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || len(f.pcm)-f.at >= feedMost {
		return
	}
	if f.at > clipRate { // removes played samples, a second at a time
		f.pcm = append(f.pcm[:0], f.pcm[f.at:]...)
		f.at = 0
	}
	f.pcm = f.resample.process(f.pcm, pcm)
}

// End marks the end of the audio. The playback is done once everything was played.
func (f *Feed) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.resample; r != nil && !f.ended { // flushes the last samples out of the filter
		f.pcm = r.process(f.pcm, make([]int16, r.taps/2))
	}
	f.ended = true
}

// read copies the next n samples to dst. piece is empty while too few samples are available. more is false at the
// end.
func (f *Feed) take(dst []int16, n int) (piece []int16, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := len(f.pcm) - f.at
	if left < n && !f.ended {
		return dst, true
	}
	k := min(n, left)
	dst = append(dst, f.pcm[f.at:f.at+k]...)
	f.at += k
	return dst, k > 0
}

// PlayInjected plays audio while it is produced. It sends silence while no audio is available; Played does not count
// that silence.
func (s *Stream) PlayFeed(f *Feed) *Playback {
	b := &Playback{player: s.ensurePlayer(), feed: f, buf: make([]int16, 0, clipRate/50), done: make(chan struct{})}
	if b.player == nil {
		b.finish()
		return b
	}
	b.player.start(b)
	return b
}

// nextInjected returns the next 20 ms of injected audio, or nil after its end.
func (b *Playback) fed() []int16 {
	const n = clipRate / 50
	var more bool
	if b.buf, more = b.feed.take(b.buf[:0], n); !more {
		return nil
	}
	if len(b.buf) == 0 {
		b.buf = b.buf[:n]
		clear(b.buf)
		return b.buf
	}
	b.sent.Add(int64(len(b.buf)))
	return b.buf
}

// A RateConverter changes the sample rate of mono audio piece by piece. It is not safe for concurrent use.
type Rate struct{ resample *resampler }

// NewRateConverter returns a converter between two rates, each 8000 to 48000 Hz.
func NewRate(from, to int) *Rate { return &Rate{newResampler(from, to)} }

// Convert appends the next piece at the other rate to dst.
func (r *Rate) Convert(dst, pcm []int16) []int16 {
	return r.resample.process(dst, pcm)
}
