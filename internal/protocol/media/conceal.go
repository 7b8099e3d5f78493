package media

// A concealBuffer holds played samples followed by samples that are still to be played. The played ones serve packet
// loss concealment. Playback can be sped up or slowed down without a discontinuity.
type track struct {
	rate int
	buf  []int16
	head int // index of the next sample to play

	gap int // consecutive samples concealed so far
	lag int // pitch period that fills the gap, samples
}

// Limits of a concealBuffer in ms.
const (
	trackPast   = 100 // played audio kept for concealment
	trackRoom   = 700 // capacity; a packet lasts at most 120 ms
	concealHold = 10  // concealed at full level; fades afterwards
	concealEnd  = 60  // silent from here on
	blendTime   = 4   // cross-fade from concealment back to audio
)

func newTrack(rate int) track {
	past := rate * trackPast / 1000
	return track{rate: rate, buf: make([]int16, past, rate*trackRoom/1000), head: past}
}

func (t *track) ms(n int) int { return n * t.rate / 1000 }

// pending returns the number of samples that are still to be played.
func (t *track) waiting() int { return len(t.buf) - t.head }

// read moves len(dst) samples to dst. The caller checks pending first.
func (t *track) take(dst []int16) {
	t.head += copy(dst, t.buf[t.head:])
	if past := t.ms(trackPast); t.head > 4*past {
		n := copy(t.buf, t.buf[t.head-past:])
		t.buf, t.head = t.buf[:n], past
	}
}

// blendIn is called after real samples were appended from position from on. After a concealed gap it cross-fades from
// the concealment into them.
func (t *track) sound(from int) {
	if t.gap == 0 {
		return
	}
	n := min(t.ms(blendTime), len(t.buf)-from)
	for i := range n {
		old := int(t.filler(from+i, t.gap+i))
		t.buf[from+i] = int16(old + (int(t.buf[from+i])-old)*(i+1)/n)
	}
	t.gap = 0
}

// conceal appends n samples in place of lost ones. It repeats the last pitch period and fades it out.
func (t *track) conceal(n int) {
	if t.gap == 0 {
		t.lag = t.pitch(len(t.buf))
	}
	for range n {
		t.buf = append(t.buf, t.filler(len(t.buf), t.gap))
		t.gap++
	}
}

// concealSample returns sample n of a gap, which is to be stored at buffer position at.
func (t *track) filler(at, n int) int16 {
	hold, end := t.ms(concealHold), t.ms(concealEnd)
	if n >= end {
		return 0
	}
	i := at - n - t.lag + n%t.lag // the gap began at at-n
	if i < 0 || i >= len(t.buf) {
		return 0
	}
	v := int(t.buf[i])
	if n > hold {
		v = v * (end - n) / (end - hold)
	}
	return int16(v)
}

// appendSilence appends n zero samples for time in which the sender transmitted nothing.
func (t *track) silence(n int) {
	for range n {
		t.buf = append(t.buf, 0)
	}
	t.gap = t.ms(concealEnd)
	t.lag = t.ms(5)
}

// pitchPeriod returns the period, 2.5 to 15 ms, with the highest autocorrelation before position at, in samples.
func (t *track) pitch(at int) int {
	step, window := max(t.rate/8000, 1), t.ms(10)
	least, most := t.ms(5)/2, min(t.ms(15), at-window)
	best, lag := float32(-1), t.ms(5)
	for l := least; l <= most; l += step {
		var cross, energy float32
		for i := at - window; i < at; i += step {
			x, y := float32(t.buf[i]), float32(t.buf[i-l])
			cross += x * y
			energy += y * y
		}
		if cross <= 0 || energy < 1 {
			continue
		}
		if q := cross * (cross / energy); q > best {
			best, lag = q, l
		}
	}
	return lag
}

// removePeriod removes one pitch period of the pending samples and returns its length. It returns 0 if too few
// samples are pending.
func (t *track) shorten() int {
	lag := t.pitch(t.head)
	if t.waiting() < 2*lag {
		return 0
	}
	y := t.buf[t.head:]
	for i := range lag {
		y[i] = int16(int(y[i]) + (int(y[i+lag])-int(y[i]))*(i+1)/lag)
	}
	copy(y[lag:], y[2*lag:])
	t.buf = t.buf[:len(t.buf)-lag]
	return lag
}

// repeatPeriod repeats one pitch period and returns its length. It returns 0 if too few samples are pending or the
// buffer is full.
func (t *track) lengthen() int {
	lag := t.pitch(t.head)
	if t.waiting() < lag || len(t.buf)+lag > cap(t.buf) {
		return 0
	}
	t.buf = t.buf[:len(t.buf)+lag]
	y := t.buf[t.head:]
	copy(y[lag:], y[:len(y)-lag])
	x := t.buf[t.head-lag:]
	for i := range lag { // cross-fade from the natural continuation back to the samples before it
		y[i] = int16(int(y[i]) + (int(x[i])-int(y[i]))*(i+1)/lag)
	}
	return lag
}

// discard drops n pending samples.
func (t *track) drop(n int) {
	n = min(n, t.waiting())
	copy(t.buf[t.head:], t.buf[t.head+n:])
	t.buf = t.buf[:len(t.buf)-n]
}
