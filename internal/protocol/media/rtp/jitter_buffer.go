package rtp

import "slices"

import (
	"soniq/internal/protocol/media/codec"
)

import (
	"soniq/internal/protocol/media/dsp"
)

// A JitterBuffer buffers the packets of one leg and decodes them, 20 ms at a time. It delays playback so that nearly
// all packets arrive in time, restores their order and conceals the remaining gaps. It follows the sender's clock by
// playing slightly faster or slower.
//
// Its timeline is the sender's: a position is the RTP timestamp at the rate of the jitter buffer. The packet loop
// pushes to its ring; one goroutine pulls.
type JitterBuffer struct {
	Ring *Ring
	rate int

	decoder  codec.Decoder
	codec    codec.Codec
	resample *dsp.Resampler
	pcm      []int16 // between decoder and resampler

	waiting []jitterPacket // ordered by position
	free    [][]byte

	anchored         bool
	ssrc             uint32
	lastTS           uint32
	extTS            int64  // lastTS, unwrapped
	playedSeq        uint16 // of the last played packet
	endPosition      int64  // position after the last buffered sample
	underrun         int64  // samples before endPosition that were concealed because no packet had arrived
	lastArrival      int64  // arrival of the last packet, ns
	pullsSinceChange int    // pulls since the speed was last changed
	lateSince        int64  // arrival of the first of a run of packets that were all too late, ns; 0: the last packet was in time

	delay  delayEstimator
	buffer dsp.ConcealBuffer

	late, lost, concealed uint64
}

// jitterPacket is a packet that waits to be played.
type jitterPacket struct {
	position int64
	seq      uint16
	kind     Kind
	payload  []byte
}

const (
	jitterMaxPackets = 64                // packets waiting; more than a second of 20 ms each
	jitterIdle       = int64(2_000e6)    // ns without packets after which the leg counts as silent
	jitterReanchor   = int64(100e6)      // ns of packets that are all too late, after which the timeline is moved
	jitterMaxExcess  = 200               // ms of delay beyond the target, above which audio is skipped
	jitterRingSize   = 8 << 10           // bytes: half a second of G.711
	FrameTime        = int64(20_000_000) // ns
)

// NewJitterBuffer returns a buffer whose output has a sample rate, Hz.
func NewJitterBuffer(rate int) *JitterBuffer {
	p := &JitterBuffer{Ring: NewRing(jitterRingSize), rate: rate, codec: codec.Count, buffer: dsp.NewConcealBuffer(rate)}
	p.delay.rate = int64(rate)
	return p
}

// frameSamples returns the number of samples per pull.
func (p *JitterBuffer) frameSamples() int { return p.rate / 50 }

// Pull fills dst with 20 ms of audio. If the leg has sent nothing for a while, it returns false and leaves dst
// unchanged.
func (p *JitterBuffer) Pull(dst []int16, now int64) bool {
	for f, ok := p.Ring.Next(); ok; f, ok = p.Ring.Next() {
		p.insert(f)
		p.Ring.Release(f)
	}
	if !p.anchored || now-p.lastArrival > jitterIdle {
		p.anchored = false
		return false
	}
	p.adjustSpeed(now)
	for p.buffer.Pending() < len(dst) {
		p.extend(len(dst) - p.buffer.Pending())
	}
	p.buffer.Read(dst)
	return true
}

// positionAt returns the position of a moment for a transit time of zero.
func (p *JitterBuffer) positionAt(now int64) int64 { return now / 1000 * int64(p.rate) / 1_000_000 }

// insert sorts a frame of the ring into the waiting packets.
func (p *JitterBuffer) insert(f Frame) {
	p.lastArrival = f.Now
	clock := int64(codec.Codec(f.Kind).Clock())
	if !p.anchored || f.SSRC != p.ssrc {
		p.startTimeline(f, clock)
	}
	p.extTS += int64(int32(f.TS - p.lastTS))
	p.lastTS = f.TS
	position := p.extTS * int64(p.rate) / clock
	late := p.positionAt(f.Now) - position - p.delay.minTransit
	ms := int64(p.rate) / 1000
	if late < -300*ms || late > 2000*ms || f.Marker && (late > 60*ms || late < -60*ms) {
		p.startTimeline(f, clock) // another timeline: RFC 3550 §5.1 permits no timestamp jump, but senders make them
		position = p.extTS * int64(p.rate) / clock
	}
	p.delay.add(p.positionAt(f.Now)-position, f.Now)
	if position >= p.endPosition-int64(p.buffer.Samples(5)) || p.rewind(position, f.Now) {
		p.lateSince = 0
		p.enqueue(f, position)
		return
	}
	if p.lateSince == 0 {
		p.lateSince = f.Now
	}
	if f.Now-p.lateSince >= jitterReanchor { // more than a few packets are late: the delay has changed permanently
		p.lateSince = 0
		p.startTimeline(f, clock)
		p.enqueue(f, p.extTS*int64(p.rate)/clock)
		return
	}
	p.late++
}

// rewind moves the end of the timeline back to a packet whose time was concealed because neither it nor a later one had
// arrived. The packet is played and the delay grows. It returns false if the delay would grow too much, or if other
// audio was played in place of the packet.
func (p *JitterBuffer) rewind(position, now int64) bool {
	back := p.endPosition - position
	if back > p.underrun || p.excessDelay(now)+back > jitterMaxExcess*int64(p.rate)/1000 {
		return false
	}
	p.endPosition, p.underrun = position, p.underrun-back
	return true
}

// excessDelay returns by how much the delay exceeds the target, in samples. It is negative if the delay is too short.
func (p *JitterBuffer) excessDelay(now int64) int64 {
	played := p.endPosition - int64(p.buffer.Pending())
	return p.positionAt(now) - played - p.delay.minTransit - p.delay.target()
}

// startTimeline starts a timeline with a packet, which is played after the target delay.
func (p *JitterBuffer) startTimeline(f Frame, clock int64) {
	p.clearWaiting()
	p.anchored, p.ssrc, p.lastTS, p.extTS = true, f.SSRC, f.TS, int64(f.TS)
	position := p.extTS * int64(p.rate) / clock
	p.delay.restart(p.positionAt(f.Now)-position, f.Now)
	p.playedSeq, p.underrun = f.Seq-1, 0
	p.endPosition = position - p.delay.target() + int64(p.buffer.Pending())
}

// clearWaiting drops the waiting packets.
func (p *JitterBuffer) clearWaiting() {
	for _, w := range p.waiting {
		p.free = append(p.free, w.payload)
	}
	p.waiting = p.waiting[:0]
}

// enqueue keeps a packet until it is due. Duplicates are dropped.
func (p *JitterBuffer) enqueue(f Frame, position int64) {
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
	p.waiting = slices.Insert(p.waiting, i, jitterPacket{position, f.Seq, f.Kind, append(b[:0], f.Payload...)})
}

// adjustSpeed compares the delay with the target, and speeds up or slows down slightly.
func (p *JitterBuffer) adjustSpeed(now int64) {
	ms := int64(p.rate) / 1000
	over := p.excessDelay(now)
	p.pullsSinceChange++
	switch {
	case over > jitterMaxExcess*ms: // far too late: skip audio
		p.underrun = 0
		p.endPosition = max(p.endPosition, p.endPosition+over-int64(p.buffer.Pending()))
		p.buffer.Discard(int(over))
		p.dropExpired()
	case over < -100*ms: // far too early: wait
		p.buffer.Conceal(int(min(-over, 500*ms)))
	case over < -10*ms && p.buffer.Pending() == 0 && !p.nextIsDue(): // slightly early, with no audio left to play slower
		p.buffer.Conceal(int(min(-over, int64(p.frameSamples()))))
	case over > 20*ms && p.pullsSinceChange > 5:
		for p.buffer.Pending() < 3*p.frameSamples() && p.nextIsDue() {
			p.decodeNext()
		}
		p.pullsSinceChange = 0
		p.buffer.RemovePeriod()
	case over < -10*ms && p.pullsSinceChange > 2:
		if p.buffer.Pending() < p.frameSamples() && p.nextIsDue() {
			p.decodeNext()
		}
		p.pullsSinceChange = 0
		p.buffer.RepeatPeriod()
	}
}

// dropExpired drops packets whose time has passed.
func (p *JitterBuffer) dropExpired() {
	for len(p.waiting) > 0 && p.waiting[0].position < p.endPosition-int64(p.frameSamples()) {
		p.lost++
		p.pop()
	}
}

func (p *JitterBuffer) pop() jitterPacket {
	w := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	p.free = append(p.free, w.payload)
	return w
}

// nextIsDue reports whether the next packet follows without a gap.
func (p *JitterBuffer) nextIsDue() bool {
	return len(p.waiting) > 0 && p.waiting[0].position <= p.endPosition+int64(p.rate)/1000
}

// extend appends about n samples: the next packet, or silence or concealment in its place.
func (p *JitterBuffer) extend(n int) {
	if p.nextIsDue() {
		p.decodeNext()
		return
	}
	if len(p.waiting) == 0 {
		p.underrun += int64(n)
	}
	next := false // true if the sender paused: the sequence numbers have no gap, the timestamps have one (RFC 3551 §4.1)
	if len(p.waiting) > 0 {
		n = min(n, int(p.waiting[0].position-p.endPosition))
		next = p.waiting[0].seq == p.playedSeq+1
	}
	if next {
		p.buffer.AppendSilence(n)
	} else {
		p.buffer.Conceal(n)
		p.concealed += uint64(n)
	}
	p.endPosition += int64(n)
}

// decodeNext decodes and buffers the next packet.
func (p *JitterBuffer) decodeNext() {
	w := p.pop()
	p.lost += uint64(max(0, int16(w.seq-p.playedSeq)-1))
	p.playedSeq, p.underrun = w.seq, 0
	if c := codec.Codec(w.kind); c != p.codec {
		p.codec, p.decoder = c, codec.NewDecoder(c)
		p.resample = dsp.NewResampler(p.decoder.Rate(), p.rate)
	}
	from := len(p.buffer.Buf)
	if p.resample == nil {
		p.buffer.Buf = p.decoder.Decode(p.buffer.Buf, w.payload)
	} else {
		p.pcm = p.decoder.Decode(p.pcm[:0], w.payload)
		p.buffer.Buf = p.resample.Process(p.buffer.Buf, p.pcm)
	}
	p.buffer.BlendIn(from)
	p.endPosition = max(p.endPosition, w.position) + int64(len(p.buffer.Buf)-from)
	if len(p.buffer.Buf) == from { // the packet had no audio
		p.endPosition++
	}
}
