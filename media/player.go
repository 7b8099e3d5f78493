package media

import (
	"context"
	"sync"
	"time"
)

// samplesPerPacket is 20 ms at 8 kHz.
const (
	samplesPerPacket = 160
	packetTime       = 20 * time.Millisecond
)

// player is the decoded sending side of a stream in its simplest form: one
// goroutine that paces packets. It exists from the first Send until the stream closes.
type player struct {
	s     *Stream
	jobs  chan *job
	wake  chan struct{} // comfort changed
	quit  chan struct{}
	done  chan struct{}
	timer *time.Timer

	mu      sync.Mutex // guards comfort
	comfort bool

	next time.Time // when the next packet is due
	h    rtpHeader
	buf  [rtpHeaderLen + samplesPerPacket]byte
}

// job is something to play: step sends packet n and reports whether more follow.
type job struct {
	ctx  context.Context
	step func(p *player, n int) bool
	done chan error
}

// Send plays 8 kHz audio to the leg, one packet per 20 ms, and returns when the
// last packet's time is over, ctx ends or the stream closes. Sends queue behind
// each other; relayed audio is held back meanwhile.
func (s *Stream) Send(ctx context.Context, pcm []int16) error {
	if len(pcm) == 0 {
		return nil
	}
	return s.play(ctx, func(p *player, n int) bool {
		from := n * samplesPerPacket
		p.audio(pcm[from:min(from+samplesPerPacket, len(pcm))])
		return from+samplesPerPacket < len(pcm)
	})
}

// SendDTMF sends digits 0-9 * # A-D as RFC 4733 events, 100 ms each with 60 ms
// between. It returns when the last is sent, or ErrNoEvents.
func (s *Stream) SendDTMF(ctx context.Context, digits string) error {
	codes := make([]byte, 0, len(digits))
	for _, d := range digits {
		c, err := eventCode(d)
		if err != nil {
			return err
		}
		codes = append(codes, c)
	}
	if !s.out.takes(kindEvent) {
		return ErrNoEvents
	}
	for _, c := range codes {
		if err := s.play(ctx, func(p *player, n int) bool { return p.event(c, n) }); err != nil {
			return err
		}
	}
	return nil
}

// SetComfort fills the time between Sends with silence packets, as a phone does,
// so that NAT bindings and latches see media.
func (s *Stream) SetComfort(on bool) {
	p := s.ensurePlayer()
	if p == nil {
		return
	}
	p.mu.Lock()
	p.comfort = on
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (s *Stream) play(ctx context.Context, step func(*player, int) bool) error {
	p := s.ensurePlayer()
	if p == nil {
		return ErrClosed
	}
	j := &job{ctx: ctx, step: step, done: make(chan error, 1)}
	select {
	case p.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.quit:
		return ErrClosed
	}
	return <-j.done // the player answers every job it took
}

func (s *Stream) ensurePlayer() *player {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if s.player == nil {
		s.player = &player{s: s, jobs: make(chan *job), wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
		s.player.timer = time.NewTimer(time.Hour)
		go s.player.run()
	}
	return s.player
}

func (p *player) stop() {
	close(p.quit)
	<-p.done
}

func (p *player) run() {
	defer close(p.done)
	defer p.timer.Stop()
	for {
		var tick <-chan time.Time
		if p.comforting() {
			p.timer.Reset(time.Until(p.due()))
			tick = p.timer.C
		}
		select {
		case <-p.quit:
			return
		case <-p.wake:
		case <-tick:
			p.silence()
		case j := <-p.jobs:
			p.s.out.mute(true)
			j.done <- p.perform(j)
			p.s.out.mute(false)
		}
	}
}

func (p *player) comforting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.comfort
}

// due is when the next packet is to be sent; after a pause that is now.
func (p *player) due() time.Time {
	if now := time.Now(); p.next.Before(now.Add(-5 * packetTime)) {
		p.skip(now)
	}
	return p.next
}

// skip moves the schedule to now and the RTP clock with it (RFC 3550 §5.1:
// the timestamp goes on in silence).
func (p *player) skip(now time.Time) {
	if !p.next.IsZero() {
		p.h.ts += uint32(now.Sub(p.next) / (time.Second / 8000))
	}
	p.next, p.h.marker = now, true
}

func (p *player) perform(j *job) error {
	for n, more := 0, true; more; n++ {
		if err := p.wait(j.ctx); err != nil {
			return err
		}
		more = j.step(p, n)
	}
	return p.wait(j.ctx) // the last packet's own time
}

func (p *player) wait(ctx context.Context) error {
	p.timer.Reset(time.Until(p.due()))
	select {
	case <-p.timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.quit:
		return ErrClosed
	}
}

// audio sends one packet; a last piece shorter than 20 ms is filled with silence.
func (p *player) audio(pcm []int16) {
	codec := p.s.out.prefers()
	b := p.buf[rtpHeaderLen:]
	n := len(codec.Encode(b, pcm))
	for i := n; i < len(b); i++ {
		b[i] = codec.silence()
	}
	p.send(kind(codec), p.buf[:])
	p.h.ts += samplesPerPacket
	p.next = p.next.Add(packetTime)
}

// silence sends a packet of silence unless the relay is feeding the leg.
func (p *player) silence() {
	if p.s.out.relaying(p.s.engine.clock()) {
		p.next = p.next.Add(packetTime)
		p.h.ts += samplesPerPacket
		return
	}
	p.audio(nil)
}

// event sends packet n of a digit: all have the digit's timestamp, the end comes
// three times (RFC 4733 §2.5.1.4).
func (p *player) event(code byte, n int) bool {
	if n < eventSteps+2 {
		b := p.buf[:rtpHeaderLen+4]
		putEvent(b[rtpHeaderLen:], code, min(n+1, eventSteps)*samplesPerPacket, n >= eventSteps-1)
		p.h.marker = n == 0
		p.send(kindEvent, b)
	}
	p.next = p.next.Add(packetTime)
	more := n < eventSteps+pauseSteps-1
	if !more {
		p.h.ts += uint32(eventSteps+pauseSteps) * samplesPerPacket
	}
	return more
}

func (p *player) send(k kind, b []byte) {
	p.s.sendOwn(p.h, k, b, p.s.engine.clock())
	p.h.seq++
	p.h.marker = false
}

// sendOwn sends a packet of the player's; b has room for the header.
func (s *Stream) sendOwn(h rtpHeader, k kind, b []byte, now int64) {
	o := &s.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || !o.enabled || !o.to.IsValid() || o.pts[k] == noPT {
		return
	}
	h.marker = o.adopt(nil, h, now) || h.marker
	h.pt = o.pts[k]
	h.seq += o.seqOffset
	h.ts += o.tsOffset
	o.transmit(s.rtp, h, b, now)
}

func (o *outbound) takes(k kind) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pts[k] != noPT
}

func (o *outbound) prefers() Codec {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.codec
}

func (o *outbound) mute(on bool) {
	o.mu.Lock()
	o.muted = on
	o.mu.Unlock()
}

// relaying reports whether a relayed packet went out within 60 ms.
func (o *outbound) relaying(now int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.source != nil && now-o.at < int64(3*packetTime)
}
