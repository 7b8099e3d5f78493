package media

import "time"

import (
	"soniq/internal/protocol/media/rtp"
)

import (
	"soniq/internal/protocol/media/codec"
)

// reception holds the receiver statistics of RFC 3550 appendix A: extended sequence numbers, loss and jitter, for one
// source after the other.
type reception struct {
	packets, bytes uint64
	outOfOrder     uint64
	first, last    int64

	ssrc          uint32
	base          uint32 // first extended sequence number of the source
	max           uint32 // highest extended sequence number
	sourceCount   uint32 // packets of this source
	oldLost       int64  // of earlier sources
	priorExpected int64  // expected and received at the last report
	priorReceived int64

	jitter  int64 // in 1/16 of a clock tick
	clock   int64 // of the last audio, Hz
	transit int32
	started bool
	timed   bool        // transit is known
	codec   codec.Codec // of the last audio

	lossRuns lossRuns
	meter    qualityMeter
	window   qualityWindow
}

// qualityWindow holds the counters at the start of the current sample.
type qualityWindow struct {
	began                   int64
	packets                 uint64
	lost, bursts, burstLost int64
}

// addPacket counts a packet of payload kind k.
func (r *reception) addPacket(h rtp.Header, k rtp.Kind, bytes int, now int64) {
	if r.first == 0 {
		r.first = now
		r.window.began = now
	}
	r.last = now
	r.setCodec(k)
	r.packets++
	r.bytes += uint64(bytes)
	if !r.started || h.SSRC != r.ssrc {
		r.newSource(h)
	}
	r.updateSequence(h.Seq)
	if !k.IsEvent() { // the timestamp of an event does not advance
		r.updateJitter(h.TS, now)
	}
	if now-r.window.began >= sampleTime {
		r.closeWindow(now)
	}
}

// setCodec follows the codec and its clock.
func (r *reception) setCodec(k rtp.Kind) {
	if r.clock == 0 {
		r.clock = 8000
	}
	if !k.IsAudio() || r.codec == codec.Codec(k) {
		return
	}
	r.codec = codec.Codec(k)
	if clock := int64(r.codec.Clock()); clock != r.clock {
		r.jitter = r.jitter * clock / r.clock
		r.clock, r.timed = clock, false
	}
}

// closeWindow adds the current window to the meter and starts the next one.
func (r *reception) closeWindow(now int64) {
	if rating, packets := r.windowRating(); packets > 0 {
		r.meter.add(now, rating, packets)
	}
	g := r.lossRuns.finished()
	r.window = qualityWindow{now, r.packets, r.lost(), g.bursts, g.lost}
}

// windowRating returns the impairments of the current window. packets is the number of packets expected.
func (r *reception) windowRating() (q emodelInput, packets float64) {
	g := r.lossRuns.finished()
	got := float64(r.packets - r.window.packets)
	lost := float64(max(0, r.lost()-r.window.lost))
	q = emodelInput{codec: r.codec, jitter: r.jitterTime(), rtt: r.meter.rtt(), burst: 1}
	if packets = got + lost; packets > 0 {
		q.loss = lost / packets
	}
	if bursts := g.bursts - r.window.bursts; bursts > 0 { // G.107 §7.5
		q.burst = float64(g.lost-r.window.burstLost) / float64(bursts) * (1 - q.loss)
	}
	return q, packets
}

func (r *reception) jitterTime() time.Duration {
	return time.Duration(r.jitter * int64(time.Second) / (16 * max(1, r.clock)))
}

func (r *reception) newSource(h rtp.Header) {
	r.oldLost = r.lost()
	r.started, r.ssrc = true, h.SSRC
	r.base = uint32(h.Seq) + 1<<16 // leaves numbers for earlier packets that arrive late
	r.max = r.base - 1
	r.sourceCount, r.priorExpected, r.priorReceived, r.timed = 0, 0, 0, false
}

// updateSequence follows the sequence number across wraps. A jump of more than 3000 means that the sender restarted
// (RFC 3550 §A.1), and is not counted as loss.
func (r *reception) updateSequence(seq uint16) {
	delta := int32(int16(seq - uint16(r.max)))
	switch {
	case delta > 3000 || delta < -3000:
		r.oldLost = r.lost()
		r.base = uint32(seq) + 1<<16
		r.max = r.base
		r.sourceCount, r.priorExpected, r.priorReceived = 0, 0, 0
	case delta > 0:
		if delta > 1 {
			r.lossRuns.start(r.max+1, r.max+uint32(delta))
		}
		r.max += uint32(delta)
	default:
		r.outOfOrder++
		r.lossRuns.fillLate(r.max + uint32(delta))
	}
	r.sourceCount++
}

func (r *reception) expected() int64 {
	if !r.started {
		return 0
	}
	return int64(r.max) - int64(r.base) + 1
}

func (r *reception) lost() int64 { return r.oldLost + r.expected() - int64(r.sourceCount) }

// updateJitter updates the interarrival jitter (RFC 3550 §A.8).
func (r *reception) updateJitter(ts uint32, now int64) {
	transit := int32(uint32(now/1000*r.clock/1_000_000) - ts)
	d := transit - r.transit
	fresh := !r.timed
	r.transit, r.timed = transit, true
	if d < 0 {
		d = -d
	}
	if fresh || int64(d) > 2*r.clock { // a new timeline, not jitter
		return
	}
	r.jitter += int64(d) - (r.jitter+8)>>4
}

// fractionLost returns the share lost since the last report, in 1/256 (RFC 3550 §6.4.1).
func (r *reception) fractionLost() uint8 {
	expected, got := r.expected()-r.priorExpected, int64(r.sourceCount)-r.priorReceived
	r.priorExpected, r.priorReceived = r.expected(), int64(r.sourceCount)
	if lost := expected - got; expected > 0 && lost > 0 {
		return uint8(min(255, lost<<8/expected))
	}
	return 0
}
