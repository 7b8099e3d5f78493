package media

import (
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/dsp"
)

// PlayOptions configures the playback of a clip.
type PlayOptions struct {
	Loop bool    // repeat until Stop
	Gain float64 // amplitude factor; 0 is 1
}

// A Playback is a clip or injected audio that is being played to one leg. Its methods are safe for concurrent use.
type Playback struct {
	player      *player
	clip        *clip.Clip
	injected    *InjectedAudio // instead of a clip
	opts        PlayOptions
	position    int // next sample; used by the player only
	reader      clip.Reader
	buf         []int16
	once        sync.Once
	done        chan struct{}
	sentSamples atomic.Int64 // samples sent
}

// Played returns the duration of the audio sent so far.
func (b *Playback) Played() time.Duration {
	return time.Duration(b.sentSamples.Load()) * time.Second / clip.Rate
}

// Play plays the clip to the leg instead of all other audio, until it ends or is stopped. A later Play replaces it.
// Send and SendDTMF interrupt it, and it continues afterwards. Received audio is handled as before.
func (s *Stream) Play(c *clip.Clip, o PlayOptions) *Playback {
	if o.Gain == 0 {
		o.Gain = 1
	}
	b := &Playback{player: s.ensurePlayer(), clip: c, opts: o, done: make(chan struct{})}
	if b.player == nil || c.Len() == 0 {
		b.finish()
		return b
	}
	b.player.startPlayback(b)
	return b
}

// Done returns a channel that is closed when the clip has ended, was stopped or replaced, or the stream closed.
func (b *Playback) Done() <-chan struct{} { return b.done }

// Stop ends the playback. It may be called at any time and repeatedly.
func (b *Playback) Stop() {
	if b.player != nil {
		b.player.endPlayback(b)
	}
	b.finish()
}

func (b *Playback) finish() { b.once.Do(func() { close(b.done) }) }

// startPlayback replaces the current playback. nil ends playback for good.
func (p *player) startPlayback(b *Playback) {
	p.mu.Lock()
	old := p.playback
	if p.playback = b; b == nil || p.ended {
		p.playback, p.ended = nil, true
	}
	ended := p.ended
	p.mu.Unlock()
	if old != nil {
		old.finish()
	}
	if ended && b != nil {
		b.finish()
	}
	wakeUp(p.wake)
}

// endPlayback ends b if it is the current playback.
func (p *player) endPlayback(b *Playback) {
	p.mu.Lock()
	if p.playback == b {
		p.playback = nil
	}
	p.mu.Unlock()
	b.finish()
	wakeUp(p.wake)
}

// nextFrame returns the next 20 ms, less at the end, and nil after it.
func (b *Playback) nextFrame() []int16 {
	if b.injected != nil {
		return b.nextInjected()
	}
	const n = clip.Rate / 50
	if b.position >= b.clip.Len() && b.opts.Loop {
		b.position = 0
	}
	piece := b.reader.Samples(b.clip, b.position, n)
	if len(piece) == 0 {
		return nil
	}
	b.position += n
	b.sentSamples.Add(int64(len(piece)))
	if b.opts.Gain == 1 && len(piece) == n {
		return piece
	}
	b.buf = b.buf[:0]
	for _, v := range piece {
		b.buf = append(b.buf, dsp.Clamp(float64(v)*b.opts.Gain))
	}
	if b.opts.Loop && len(b.buf) < n { // the loop must have no gap at the seam
		b.position = n - len(b.buf)
		for _, v := range b.reader.Samples(b.clip, 0, b.position) {
			b.buf = append(b.buf, dsp.Clamp(float64(v)*b.opts.Gain))
		}
	}
	return b.buf
}
