package media

import "slices"

// A jitterBuffer buffers the packets of one leg and decodes them, 20 ms at a time. It delays playback so that nearly
// all packets arrive in time, restores their order and conceals the remaining gaps. It follows the sender's clock by
// playing slightly faster or slower.
//
// Its timeline is the sender's: a position is the RTP timestamp at the rate of the jitter buffer. The packet loop
// pushes to its ring; one goroutine pulls.
type playout struct {
	ring *ring
	rate int

	decoder  decoder
	codec    Codec
	resample *resampler
	pcm      []int16 // between decoder and resampler

	waiting []packet // ordered by position
	free    [][]byte

	anchored bool
	ssrc     uint32
	lastTS   uint32
	ext      int64  // lastTS, unwrapped
	lastSeq  uint16 // of the last played packet
	end      int64  // position after the last buffered sample
	heard    int64  // arrival of the last packet, ns
	settled  int    // pulls since the speed was last changed
	tardy    int64  // arrival of the first of a run of packets that were all too late, ns; 0: the last packet was in time

	delay delay
	track track

	late, lost, concealed uint64
}

// jitterPacket is a packet that waits to be played.
type packet struct {
	position int64
	seq      uint16
	kind     kind
	payload  []byte
}

const (
	playoutMost  = 64                // packets waiting; more than a second of 20 ms each
	playoutIdle  = int64(2_000e6)    // ns without packets after which the leg counts as silent
	playoutTardy = int64(100e6)      // ns of packets that are all too late, after which the timeline is moved
	ringForEars  = 8 << 10           // bytes: half a second of G.711
	frameTime    = int64(20_000_000) // ns
)

func newPlayout(rate int) *playout {
	p := &playout{ring: newRing(ringForEars), rate: rate, codec: codecs, track: newTrack(rate)}
	p.delay.rate = int64(rate)
	return p
}

// frameSamples returns the number of samples per pull.
func (p *playout) frame() int { return p.rate / 50 }

// pull fills dst with 20 ms of audio. If the leg has sent nothing for a while, it returns false and leaves dst
// unchanged.
func (p *playout) pull(dst []int16, now int64) bool {
	for f, ok := p.ring.next(); ok; f, ok = p.ring.next() {
		p.insert(f)
		p.ring.release(f)
	}
	if !p.anchored || now-p.heard > playoutIdle {
		p.anchored = false
		return false
	}
	p.pace(now)
	for p.track.waiting() < len(dst) {
		p.extend(len(dst) - p.track.waiting())
	}
	p.track.take(dst)
	return true
}

// positionAt returns the position of a moment for a transit time of zero.
func (p *playout) at(now int64) int64 { return now / 1000 * int64(p.rate) / 1_000_000 }

// insert sorts a frame of the ring into the waiting packets.
func (p *playout) insert(f frame) {
	p.heard = f.now
	clock := int64(Codec(f.kind).clock())
	if !p.anchored || f.ssrc != p.ssrc {
		p.anchor(f, clock)
	}
	p.ext += int64(int32(f.ts - p.lastTS))
	p.lastTS = f.ts
	position := p.ext * int64(p.rate) / clock
	late := p.at(f.now) - position - p.delay.base
	ms := int64(p.rate) / 1000
	if late < -300*ms || late > 2000*ms || f.marker && (late > 60*ms || late < -60*ms) {
		p.anchor(f, clock) // another timeline: RFC 3550 §5.1 permits no timestamp jump, but senders make them
		position = p.ext * int64(p.rate) / clock
	}
	p.delay.add(p.at(f.now)-position, f.now)
	if position >= p.end-int64(p.track.ms(5)) {
		p.tardy = 0
		p.queue(f, position)
		return
	}
	if p.tardy == 0 {
		p.tardy = f.now
	}
	if f.now-p.tardy >= playoutTardy { // more than a few packets are late: the delay has changed permanently
		p.tardy = 0
		p.anchor(f, clock)
		p.queue(f, p.ext*int64(p.rate)/clock)
		return
	}
	p.late++
}

// startTimeline starts a timeline with a packet, which is played after the target delay.
func (p *playout) anchor(f frame, clock int64) {
	p.drain()
	p.anchored, p.ssrc, p.lastTS, p.ext = true, f.ssrc, f.ts, int64(f.ts)
	position := p.ext * int64(p.rate) / clock
	p.delay.restart(p.at(f.now)-position, f.now)
	p.lastSeq = f.seq - 1
	p.end = position - p.delay.target() + int64(p.track.waiting())
}

// clearWaiting drops the waiting packets.
func (p *playout) drain() {
	for _, w := range p.waiting {
		p.free = append(p.free, w.payload)
	}
	p.waiting = p.waiting[:0]
}

// enqueue keeps a packet until it is due. Duplicates are dropped.
func (p *playout) queue(f frame, position int64) {
	i := len(p.waiting)
	for i > 0 && p.waiting[i-1].position > position {
		i--
	}
	if len(p.waiting) == playoutMost || i > 0 && p.waiting[i-1].position == position {
		return
	}
	var b []byte
	if n := len(p.free); n > 0 {
		b, p.free = p.free[n-1], p.free[:n-1]
	}
	p.waiting = slices.Insert(p.waiting, i, packet{position, f.seq, f.kind, append(b[:0], f.payload...)})
}

// adjustSpeed compares the delay with the target, and speeds up or slows down slightly.
func (p *playout) pace(now int64) {
	ms := int64(p.rate) / 1000
	played := p.end - int64(p.track.waiting())
	over := p.at(now) - played - p.delay.base - p.delay.target()
	p.settled++
	switch {
	case over > 150*ms: // far too late: skip audio
		p.end = max(p.end, p.end+over-int64(p.track.waiting()))
		p.track.drop(int(over))
		p.discard()
	case over < -100*ms: // far too early: wait
		p.track.conceal(int(min(-over, 500*ms)))
	case over < -10*ms && p.track.waiting() == 0 && !p.due(): // slightly early, with no audio left to play slower
		p.track.conceal(int(min(-over, int64(p.frame()))))
	case over > 20*ms && p.settled > 5:
		for p.track.waiting() < 3*p.frame() && p.due() {
			p.decode()
		}
		p.settled = 0
		p.track.shorten()
	case over < -10*ms && p.settled > 2:
		if p.track.waiting() < p.frame() && p.due() {
			p.decode()
		}
		p.settled = 0
		p.track.lengthen()
	}
}

// dropExpired drops packets whose time has passed.
func (p *playout) discard() {
	for len(p.waiting) > 0 && p.waiting[0].position < p.end-int64(p.frame()) {
		p.lost++
		p.pop()
	}
}

func (p *playout) pop() packet {
	w := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	p.free = append(p.free, w.payload)
	return w
}

// nextIsDue reports whether the next packet follows without a gap.
func (p *playout) due() bool {
	return len(p.waiting) > 0 && p.waiting[0].position <= p.end+int64(p.rate)/1000
}

// extend appends about n samples: the next packet, or silence or concealment in its place.
func (p *playout) extend(n int) {
	if p.due() {
		p.decode()
		return
	}
	next := false // true if the sender paused: the sequence numbers have no gap, the timestamps have one (RFC 3551 §4.1)
	if len(p.waiting) > 0 {
		n = min(n, int(p.waiting[0].position-p.end))
		next = p.waiting[0].seq == p.lastSeq+1
	}
	if next {
		p.track.silence(n)
	} else {
		p.track.conceal(n)
		p.concealed += uint64(n)
	}
	p.end += int64(n)
}

// decodeNext decodes and buffers the next packet.
func (p *playout) decode() {
	w := p.pop()
	p.lost += uint64(max(0, int16(w.seq-p.lastSeq)-1))
	p.lastSeq = w.seq
	if c := Codec(w.kind); c != p.codec {
		p.codec, p.decoder = c, newDecoder(c)
		p.resample = newResampler(p.decoder.rate(), p.rate)
	}
	from := len(p.track.buf)
	if p.resample == nil {
		p.track.buf = p.decoder.decode(p.track.buf, w.payload)
	} else {
		p.pcm = p.decoder.decode(p.pcm[:0], w.payload)
		p.track.buf = p.resample.process(p.track.buf, p.pcm)
	}
	p.track.sound(from)
	p.end = max(p.end, w.position) + int64(len(p.track.buf)-from)
	if len(p.track.buf) == from { // the packet had no audio
		p.end++
	}
}
