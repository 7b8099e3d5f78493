package media

// reception is the receiver side of RFC 3550 appendix A: extended sequence
// numbers, loss and jitter of one source after the other.
type reception struct {
	packets, bytes uint64
	outOfOrder     uint64
	first, last    int64

	ssrc        uint32
	started     bool
	base        uint32 // extended number the source began with
	max         uint32 // highest extended number
	sourceCount uint32 // packets of this source
	oldLost     int64  // of earlier sources
	prior       int64  // expected and received at the last report
	priorGot    int64

	transit int32
	timed   bool  // transit is known
	jitter  int64 // 1/16 samples
}

func (r *reception) count(h rtpHeader, bytes int, now int64) {
	if r.first == 0 {
		r.first = now
	}
	r.last = now
	r.packets++
	r.bytes += uint64(bytes)
	if !r.started || h.ssrc != r.ssrc {
		r.newSource(h)
	}
	r.sequence(h.seq)
	r.measure(h.ts, now)
}

func (r *reception) newSource(h rtpHeader) {
	r.oldLost = r.lost()
	r.started, r.ssrc = true, h.ssrc
	r.base = uint32(h.seq) + 1<<16 // room for earlier ones to arrive late
	r.max = r.base - 1
	r.sourceCount, r.prior, r.priorGot, r.timed = 0, 0, 0, false
}

// sequence follows the number across wraps. A jump of more than 3000 is a
// sender that began anew (RFC 3550 §A.1), not a loss.
func (r *reception) sequence(seq uint16) {
	delta := int32(int16(seq - uint16(r.max)))
	switch {
	case delta > 3000 || delta < -3000:
		r.oldLost = r.lost()
		r.base = uint32(seq) + 1<<16
		r.max = r.base
		r.sourceCount, r.prior, r.priorGot = 0, 0, 0
	case delta > 0:
		r.max += uint32(delta)
	default:
		r.outOfOrder++
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

// measure is RFC 3550 §A.8 at 8 kHz.
func (r *reception) measure(ts uint32, now int64) {
	transit := int32(uint32(now/125000) - ts)
	d := transit - r.transit
	fresh := !r.timed
	r.transit, r.timed = transit, true
	if d < 0 {
		d = -d
	}
	if fresh || d > 8000*2 { // a new time line, not jitter
		return
	}
	r.jitter += int64(d) - (r.jitter+8)>>4
}

// fraction is the share lost since the last report, in 1/256 (RFC 3550 §6.4.1).
func (r *reception) fraction() uint8 {
	expected, got := r.expected()-r.prior, int64(r.sourceCount)-r.priorGot
	r.prior, r.priorGot = r.expected(), int64(r.sourceCount)
	if lost := expected - got; expected > 0 && lost > 0 {
		return uint8(min(255, lost<<8/expected))
	}
	return 0
}
