package media

import "sync"

// feedMost is how much sound may wait in a feed, in samples: three minutes.
const feedMost = 180 * clipRate

// A Feed is sound that is played while it comes. It is safe for concurrent use.
type Feed struct {
	mu       sync.Mutex // guards all below
	resample *resampler
	pcm      []int16 // at clipRate, of it those from at on are still to be played
	at       int
	ended    bool
}

// NewFeed makes a feed of mono samples at a rate from 8000 to 48000 Hz.
func NewFeed(rate int) *Feed { return &Feed{resample: newResampler(rate, clipRate)} }

// Write adds sound. What is more than three minutes ahead of what is heard is left out.
func (f *Feed) Write(pcm []int16) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || len(f.pcm)-f.at >= feedMost {
		return
	}
	if f.at > clipRate { // let go of what was played, a second at a time
		f.pcm = append(f.pcm[:0], f.pcm[f.at:]...)
		f.at = 0
	}
	f.pcm = f.resample.process(f.pcm, pcm)
}

// End says that no more sound comes: its playback is done once all was played.
func (f *Feed) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.resample; r != nil && !f.ended { // pushes the last samples through the filter
		f.pcm = r.process(f.pcm, make([]int16, r.taps/2))
	}
	f.ended = true
}

// take copies the next n samples to dst; none are there while it must be waited, more is false at the end.
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

// PlayFeed is Play of sound that still comes. Silence is sent while there is none, which Heard does not count.
func (s *Stream) PlayFeed(f *Feed) *Playback {
	b := &Playback{player: s.ensurePlayer(), feed: f, buf: make([]int16, 0, clipRate/50), done: make(chan struct{})}
	if b.player == nil {
		b.finish()
		return b
	}
	b.player.start(b)
	return b
}

// fed is the next 20 ms of a feed, nil after its end.
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

// A Rate changes the rate of mono sound that comes piece by piece. It is for one goroutine.
type Rate struct{ resample *resampler }

// NewRate changes from one rate to another, each 8000 to 48000 Hz.
func NewRate(from, to int) *Rate { return &Rate{newResampler(from, to)} }

// Convert is the next piece at the other rate, appended to dst.
func (r *Rate) Convert(dst, pcm []int16) []int16 {
	return r.resample.process(dst, pcm)
}
