package media

import "slices"

// A jitterBuffer buffers the packets of one leg and decodes them, 20 ms at a time. It delays playback so that nearly
// all packets arrive in time, restores their order and conceals the remaining gaps. It follows the sender's clock by
// playing slightly faster or slower.
//
// Its timeline is the sender's: a position is the RTP timestamp at the rate of the jitter buffer. The packet loop
// pushes to its ring; one goroutine pulls.
type jitterBuffer struct {
	ring *packetRing
	rate int

	decoder  decoder
	codec    Codec
	resample *resampler
	pcm      []int16 // between decoder and resampler

	waiting []jitterPacket // ordered by position
	free    [][]byte

	anchored         bool
	ssrc             uint32
	lastTS           uint32
	extTS            int64  // lastTS, unwrapped
	playedSeq        uint16 // of the last played packet
	endPosition      int64  // position after the last buffered sample
	lastArrival      int64  // arrival of the last packet, ns
	pullsSinceChange int    // pulls since the speed was last changed
	lateSince        int64  // arrival of the first of a run of packets that were all too late, ns; 0: the last packet was in time

	delay  delayEstimator
	buffer concealBuffer

	late, lost, concealed uint64
}

// jitterPacket is a packet that waits to be played.
type jitterPacket struct {
	position int64
	seq      uint16
	kind     payloadKind
	payload  []byte
}

const (
	jitterMaxPackets = 64                // packets waiting; more than a second of 20 ms each
	jitterIdle       = int64(2_000e6)    // ns without packets after which the leg counts as silent
	jitterReanchor   = int64(100e6)      // ns of packets that are all too late, after which the timeline is moved
	jitterRingSize   = 8 << 10           // bytes: half a second of G.711
	frameTime        = int64(20_000_000) // ns
)

func newJitterBuffer(rate int) *jitterBuffer {
	p := &jitterBuffer{ring: newPacketRing(jitterRingSize), rate: rate, codec: codecCount, buffer: newConcealBuffer(rate)}
	p.delay.rate = int64(rate)
	return p
}

// frameSamples returns the number of samples per pull.
func (p *jitterBuffer) frameSamples() int { return p.rate / 50 }

// pull fills dst with 20 ms of audio. If the leg has sent nothing for a while, it returns false and leaves dst
// unchanged.
func (p *jitterBuffer) pull(dst []int16, now int64) bool {
	for f, ok := p.ring.next(); ok; f, ok = p.ring.next() {
		p.insert(f)
		p.ring.release(f)
	}
	if !p.anchored || now-p.lastArrival > jitterIdle {
		p.anchored = false
		return false
	}
	p.adjustSpeed(now)
	for p.buffer.pending() < len(dst) {
		p.extend(len(dst) - p.buffer.pending())
	}
	p.buffer.read(dst)
	return true
}

// positionAt returns the position of a moment for a transit time of zero.
func (p *jitterBuffer) positionAt(now int64) int64 { return now / 1000 * int64(p.rate) / 1_000_000 }

// insert sorts a frame of the ring into the waiting packets.
func (p *jitterBuffer) insert(f ringFrame) {
	p.lastArrival = f.now
	clock := int64(Codec(f.kind).clock())
	if !p.anchored || f.ssrc != p.ssrc {
		p.startTimeline(f, clock)
	}
	p.extTS += int64(int32(f.ts - p.lastTS))
	p.lastTS = f.ts
	position := p.extTS * int64(p.rate) / clock
	late := p.positionAt(f.now) - position - p.delay.minTransit
	ms := int64(p.rate) / 1000
	if late < -300*ms || late > 2000*ms || f.marker && (late > 60*ms || late < -60*ms) {
		p.startTimeline(f, clock) // another timeline: RFC 3550 §5.1 permits no timestamp jump, but senders make them
		position = p.extTS * int64(p.rate) / clock
	}
	p.delay.add(p.positionAt(f.now)-position, f.now)
	if position >= p.endPosition-int64(p.buffer.ms(5)) {
		p.lateSince = 0
		p.enqueue(f, position)
		return
	}
	if p.lateSince == 0 {
		p.lateSince = f.now
	}
	if f.now-p.lateSince >= jitterReanchor { // more than a few packets are late: the delay has changed permanently
		p.lateSince = 0
		p.startTimeline(f, clock)
		p.enqueue(f, p.extTS*int64(p.rate)/clock)
		return
	}
	p.late++
}

// startTimeline starts a timeline with a packet, which is played after the target delay.
func (p *jitterBuffer) startTimeline(f ringFrame, clock int64) {
	p.clearWaiting()
	p.anchored, p.ssrc, p.lastTS, p.extTS = true, f.ssrc, f.ts, int64(f.ts)
	position := p.extTS * int64(p.rate) / clock
	p.delay.restart(p.positionAt(f.now)-position, f.now)
	p.playedSeq = f.seq - 1
	p.endPosition = position - p.delay.target() + int64(p.buffer.pending())
}

// clearWaiting drops the waiting packets.
func (p *jitterBuffer) clearWaiting() {
	for _, w := range p.waiting {
		p.free = append(p.free, w.payload)
	}
	p.waiting = p.waiting[:0]
}

// enqueue keeps a packet until it is due. Duplicates are dropped.
func (p *jitterBuffer) enqueue(f ringFrame, position int64) {
	i := len(p.waiting)
	for i > 0 && p.waiting[i-1].position > position {
		i--
	}
	if len(p.waiting) == jitterMaxPackets || i > 0 && p.waiting[i-1].position == position {
		return
	}
	var b []byte
	if n := len(p.free); n > 0 {
		b, p.free = p.free[n-1], p.free[:n-1]
	}
	p.waiting = slices.Insert(p.waiting, i, jitterPacket{position, f.seq, f.kind, append(b[:0], f.payload...)})
}

// adjustSpeed compares the delay with the target, and speeds up or slows down slightly.
func (p *jitterBuffer) adjustSpeed(now int64) {
	ms := int64(p.rate) / 1000
	played := p.endPosition - int64(p.buffer.pending())
	over := p.positionAt(now) - played - p.delay.minTransit - p.delay.target()
	p.pullsSinceChange++
	switch {
	case over > 150*ms: // far too late: skip audio
		p.endPosition = max(p.endPosition, p.endPosition+over-int64(p.buffer.pending()))
		p.buffer.discard(int(over))
		p.dropExpired()
	case over < -100*ms: // far too early: wait
		p.buffer.conceal(int(min(-over, 500*ms)))
	case over < -10*ms && p.buffer.pending() == 0 && !p.nextIsDue(): // slightly early, with no audio left to play slower
		p.buffer.conceal(int(min(-over, int64(p.frameSamples()))))
	case over > 20*ms && p.pullsSinceChange > 5:
		for p.buffer.pending() < 3*p.frameSamples() && p.nextIsDue() {
			p.decodeNext()
		}
		p.pullsSinceChange = 0
		p.buffer.removePeriod()
	case over < -10*ms && p.pullsSinceChange > 2:
		if p.buffer.pending() < p.frameSamples() && p.nextIsDue() {
			p.decodeNext()
		}
		p.pullsSinceChange = 0
		p.buffer.repeatPeriod()
	}
}

// dropExpired drops packets whose time has passed.
func (p *jitterBuffer) dropExpired() {
	for len(p.waiting) > 0 && p.waiting[0].position < p.endPosition-int64(p.frameSamples()) {
		p.lost++
		p.pop()
	}
}

func (p *jitterBuffer) pop() jitterPacket {
	w := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	p.free = append(p.free, w.payload)
	return w
}

// nextIsDue reports whether the next packet follows without a gap.
func (p *jitterBuffer) nextIsDue() bool {
	return len(p.waiting) > 0 && p.waiting[0].position <= p.endPosition+int64(p.rate)/1000
}

// extend appends about n samples: the next packet, or silence or concealment in its place.
func (p *jitterBuffer) extend(n int) {
	if p.nextIsDue() {
		p.decodeNext()
		return
	}
	next := false // true if the sender paused: the sequence numbers have no gap, the timestamps have one (RFC 3551 §4.1)
	if len(p.waiting) > 0 {
		n = min(n, int(p.waiting[0].position-p.endPosition))
		next = p.waiting[0].seq == p.playedSeq+1
	}
	if next {
		p.buffer.appendSilence(n)
	} else {
		p.buffer.conceal(n)
		p.concealed += uint64(n)
	}
	p.endPosition += int64(n)
}

// decodeNext decodes and buffers the next packet.
func (p *jitterBuffer) decodeNext() {
	w := p.pop()
	p.lost += uint64(max(0, int16(w.seq-p.playedSeq)-1))
	p.playedSeq = w.seq
	if c := Codec(w.kind); c != p.codec {
		p.codec, p.decoder = c, newDecoder(c)
		p.resample = newResampler(p.decoder.rate(), p.rate)
	}
	from := len(p.buffer.buf)
	if p.resample == nil {
		p.buffer.buf = p.decoder.decode(p.buffer.buf, w.payload)
	} else {
		p.pcm = p.decoder.decode(p.pcm[:0], w.payload)
		p.buffer.buf = p.resample.process(p.buffer.buf, p.pcm)
	}
	p.buffer.blendIn(from)
	p.endPosition = max(p.endPosition, w.position) + int64(len(p.buffer.buf)-from)
	if len(p.buffer.buf) == from { // the packet had no audio
		p.endPosition++
	}
}
