package media

import (
	"sync"
	"sync/atomic"
	"time"
)

// PlayOptions say how a clip is played.
type PlayOptions struct {
	Loop bool    // again and again, until Stop
	Gain float64 // factor of the amplitude; 0 is 1
}

// A Playback is a clip being played to one leg.
type Playback struct {
	player *player
	clip   *Clip
	feed   *Feed // in place of a clip
	opts   PlayOptions
	at     int // the player's
	buf    []int16
	once   sync.Once
	done   chan struct{}
	sent   atomic.Int64 // samples of the clip
}

// Heard is how much of the clip has been sent so far.
func (b *Playback) Heard() time.Duration {
	return time.Duration(b.sent.Load()) * time.Second / clipRate
}

// Play lets the leg hear the clip in place of everything else, until it ends or
// is stopped; a later Play replaces it. Send and SendDTMF interrupt it and it
// goes on after them. What the leg says is heard as before.
func (s *Stream) Play(c *Clip, o PlayOptions) *Playback {
	if o.Gain == 0 {
		o.Gain = 1
	}
	b := &Playback{player: s.ensurePlayer(), clip: c, opts: o, done: make(chan struct{})}
	if b.player == nil || len(c.pcm) == 0 {
		b.finish()
		return b
	}
	b.player.start(b)
	return b
}

// Done is closed when the clip has been played to its end, was stopped or
// replaced, or the stream closed.
func (b *Playback) Done() <-chan struct{} { return b.done }

// Stop ends it. It may be called at any time, and again.
func (b *Playback) Stop() {
	if b.player != nil {
		b.player.over(b)
	}
	b.finish()
}

func (b *Playback) finish() { b.once.Do(func() { close(b.done) }) }

// start replaces what is being played; nil ends it for good.
func (p *player) start(b *Playback) {
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
	nudge(p.wake)
}

// over ends b if it is what is being played.
func (p *player) over(b *Playback) {
	p.mu.Lock()
	if p.playback == b {
		p.playback = nil
	}
	p.mu.Unlock()
	b.finish()
	nudge(p.wake)
}

// next is the next 20 ms, fewer at the end, nil after it.
func (b *Playback) next() []int16 {
	if b.feed != nil {
		return b.fed()
	}
	const n = clipRate / 50
	pcm := b.clip.pcm
	if b.at >= len(pcm) && b.opts.Loop {
		b.at = 0
	}
	if b.at >= len(pcm) {
		return nil
	}
	piece := pcm[b.at:min(b.at+n, len(pcm))]
	b.at += n
	b.sent.Add(int64(len(piece)))
	if b.opts.Gain == 1 && len(piece) == n {
		return piece
	}
	b.buf = b.buf[:0]
	for _, v := range piece {
		b.buf = append(b.buf, clip(float64(v)*b.opts.Gain))
	}
	if b.opts.Loop && len(b.buf) < n { // the join must have no gap
		b.at = n - len(b.buf)
		for _, v := range pcm[:min(b.at, len(pcm))] {
			b.buf = append(b.buf, clip(float64(v)*b.opts.Gain))
		}
	}
	return b.buf
}
