package media

// A concealBuffer holds played samples followed by samples that are still to be played. The played ones serve packet
// loss concealment. Playback can be sped up or slowed down without a discontinuity.
type concealBuffer struct {
	rate int
	buf  []int16
	head int // index of the next sample to play

	concealed int // consecutive samples concealed so far
	pitchLag  int // pitch period that fills the gap, samples
}

// Limits of a concealBuffer in ms.
const (
	concealHistory  = 100 // played audio kept for concealment
	concealCapacity = 700 // capacity; a packet lasts at most 120 ms
	concealHold     = 10  // concealed at full level; fades afterwards
	concealEnd      = 60  // silent from here on
	concealBlend    = 4   // cross-fade from concealment back to audio
)

func newConcealBuffer(rate int) concealBuffer {
	past := rate * concealHistory / 1000
	return concealBuffer{rate: rate, buf: make([]int16, past, rate*concealCapacity/1000), head: past}
}

func (t *concealBuffer) ms(n int) int { return n * t.rate / 1000 }

// pending returns the number of samples that are still to be played.
func (t *concealBuffer) pending() int { return len(t.buf) - t.head }

// read moves len(dst) samples to dst. The caller checks pending first.
func (t *concealBuffer) read(dst []int16) {
	t.head += copy(dst, t.buf[t.head:])
	if past := t.ms(concealHistory); t.head > 4*past {
		n := copy(t.buf, t.buf[t.head-past:])
		t.buf, t.head = t.buf[:n], past
	}
}

// blendIn is called after real samples were appended from position from on. After a concealed gap it cross-fades from
// the concealment into them.
func (t *concealBuffer) blendIn(from int) {
	if t.concealed == 0 {
		return
	}
	n := min(t.ms(concealBlend), len(t.buf)-from)
	for i := range n {
		old := int(t.concealSample(from+i, t.concealed+i))
		t.buf[from+i] = int16(old + (int(t.buf[from+i])-old)*(i+1)/n)
	}
	t.concealed = 0
}

// conceal appends n samples in place of lost ones. It repeats the last pitch period and fades it out.
func (t *concealBuffer) conceal(n int) {
	if t.concealed == 0 {
		t.pitchLag = t.pitchPeriod(len(t.buf))
	}
	for range n {
		t.buf = append(t.buf, t.concealSample(len(t.buf), t.concealed))
		t.concealed++
	}
}

// concealSample returns sample n of a gap, which is to be stored at buffer position at.
func (t *concealBuffer) concealSample(at, n int) int16 {
	hold, end := t.ms(concealHold), t.ms(concealEnd)
	if n >= end {
		return 0
	}
	i := at - n - t.pitchLag + n%t.pitchLag // the gap began at at-n
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
func (t *concealBuffer) appendSilence(n int) {
	for range n {
		t.buf = append(t.buf, 0)
	}
	t.concealed = t.ms(concealEnd)
	t.pitchLag = t.ms(5)
}

// pitchPeriod returns the period, 2.5 to 15 ms, with the highest autocorrelation before position at, in samples.
func (t *concealBuffer) pitchPeriod(at int) int {
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
func (t *concealBuffer) removePeriod() int {
	lag := t.pitchPeriod(t.head)
	if t.pending() < 2*lag {
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
func (t *concealBuffer) repeatPeriod() int {
	lag := t.pitchPeriod(t.head)
	if t.pending() < lag || len(t.buf)+lag > cap(t.buf) {
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
func (t *concealBuffer) discard(n int) {
	n = min(n, t.pending())
	copy(t.buf[t.head:], t.buf[t.head+n:])
	t.buf = t.buf[:len(t.buf)-n]
}
