package media

import (
	"context"
	"sync"
	"time"

	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/rtp"
)

// packetTime is the duration of the packets we send.
const packetTime = 20 * time.Millisecond

// samplesPerPacket is the number of samples per packet at 8 kHz.
const samplesPerPacket = 160

// player paces the packets that a stream sends itself, in one goroutine. It exists from the first Send, Play, digit
// or SetComfort until the stream closes.
type player struct {
	s      *Stream
	jobs   chan *playJob
	digits chan dtmfKey
	wake   chan struct{} // comfort or playback changed
	quit   chan struct{}
	done   chan struct{}
	timer  *time.Timer

	mu       sync.Mutex // guards comfort, playback and ended
	comfort  bool
	playback *Playback
	ended    bool

	nextAt time.Time // time of the next packet
	padded []int16   // padding buffer for a piece shorter than a packet
}

// playJob is something to send: step sends packet n and reports whether more follow.
type playJob struct {
	ctx  context.Context
	step func(p *player, n int) bool
	done chan error
}

// Send plays 8 kHz audio to the leg, one packet per 20 ms. It returns when the last packet's time is over, ctx ends
// or the stream closes. Sends are queued. Relayed audio, mixed audio and a playback are suppressed meanwhile.
func (s *Stream) Send(ctx context.Context, pcm []int16) error {
	if len(pcm) == 0 {
		return nil
	}
	const n = samplesPerPacket
	return s.runJob(ctx, func(p *player, i int) bool {
		p.sendAudio(pcm[i*n:min(i*n+n, len(pcm))], 8000)
		return i*n+n < len(pcm)
	})
}

// SetComfort sends silence packets between Sends, as a phone does, so that NAT bindings stay open and latches see
// media.
func (s *Stream) SetComfort(on bool) {
	p := s.ensurePlayer()
	if p == nil {
		return
	}
	p.mu.Lock()
	p.comfort = on
	p.mu.Unlock()
	wakeUp(p.wake)
}

func (s *Stream) runJob(ctx context.Context, step func(*player, int) bool) error {
	p := s.ensurePlayer()
	if p == nil {
		return ErrClosed
	}
	j := &playJob{ctx: ctx, step: step, done: make(chan error, 1)}
	select {
	case p.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.quit:
		return ErrClosed
	}
	return <-j.done // the player answers every accepted job
}

func (s *Stream) ensurePlayer() *player {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if s.player == nil {
		s.player = &player{s: s, jobs: make(chan *playJob), digits: make(chan dtmfKey, maxQueuedDigits), wake: make(chan struct{}, 1),
			quit: make(chan struct{}), done: make(chan struct{})}
		s.player.timer = time.NewTimer(time.Hour)
		go s.player.run()
	}
	return s.player
}

func (p *player) stop() {
	close(p.quit)
	<-p.done
	p.startPlayback(nil)
}

func (p *player) run() {
	defer close(p.done)
	defer p.timer.Stop()
	for {
		var tick <-chan time.Time
		playback, comfort := p.background()
		p.s.out.setMuted(playback != nil)
		if playback != nil || comfort {
			p.timer.Reset(time.Until(p.nextDue()))
			tick = p.timer.C
		}
		select {
		case <-p.quit:
			return
		case <-p.wake:
		case <-tick:
			p.sendBackground(playback)
		case j := <-p.jobs:
			p.s.out.setMuted(true)
			err := p.runJob(j)
			p.endJob() // before Send returns, so that what is relayed then is not suppressed any more
			j.done <- err
		case k := <-p.digits:
			p.s.out.setMuted(true)
			p.playDigit(k)
		}
	}
}

// endJob lets relayed and mixed audio pass again, unless a playback continues.
func (p *player) endJob() {
	playback, _ := p.background()
	p.s.out.setMuted(playback != nil)
}

// background returns what is sent while no job runs.
func (p *player) background() (*Playback, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.playback, p.comfort
}

func (p *player) sendBackground(playback *Playback) {
	if playback == nil {
		p.sendComfort()
		return
	}
	if pcm := playback.nextFrame(); pcm != nil {
		p.sendAudio(pcm, clip.Rate)
		return
	}
	p.endPlayback(playback)
}

// nextDue returns the time of the next packet. After a pause that is now.
func (p *player) nextDue() time.Time {
	if now := time.Now(); p.nextAt.Before(now.Add(-5 * packetTime)) {
		p.nextAt = now
	}
	return p.nextAt
}

func (p *player) runJob(j *playJob) error {
	for n, more := 0, true; more; n++ {
		if err := p.wait(j.ctx); err != nil {
			return err
		}
		more = j.step(p, n)
	}
	return p.wait(j.ctx) // the duration of the last packet
}

func (p *player) wait(ctx context.Context) error {
	p.timer.Reset(time.Until(p.nextDue()))
	select {
	case <-p.timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.quit:
		return ErrClosed
	}
}

// sendAudio sends one packet. A last piece shorter than 20 ms is padded with silence.
func (p *player) sendAudio(pcm []int16, rate int) {
	if n := rate / 50; len(pcm) < n {
		p.padded = append(p.padded[:0], pcm...)
		p.padded = append(p.padded, make([]int16, n-len(pcm))...)
		pcm = p.padded
	}
	p.s.encodeAndSend(pcm, rate, p.s.engine.clock(), fromPlayer)
	p.nextAt = p.nextAt.Add(packetTime)
}

// sendComfort sends a packet of silence, unless relayed or mixed audio was sent to the leg just now.
func (p *player) sendComfort() {
	if now := p.s.engine.clock(); p.s.out.relayedRecently(now) {
		p.nextAt = p.nextAt.Add(packetTime)
		return
	}
	p.sendAudio(nil, 8000)
}

func (o *outbound) hasType(k rtp.Kind) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pts[k] != noPT
}

func (o *outbound) setMuted(on bool) {
	o.mu.Lock()
	o.muted = on
	o.mu.Unlock()
}

// relayedRecently reports whether a relayed or mixed packet was sent within the last 60 ms.
func (o *outbound) relayedRecently(now int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now-o.relayedAt < 3*rtp.FrameTime
}
