package dsp

// A ConcealBuffer holds played samples followed by samples that are still to be played. The played ones serve packet
// loss concealment. Playback can be sped up or slowed down without a discontinuity.
type ConcealBuffer struct {
	rate int
	Buf  []int16
	head int // index of the next sample to play

	concealed int // consecutive samples concealed so far
	pitchLag  int // pitch period that fills the gap, samples
}

// Limits of a ConcealBuffer in ms.
const (
	concealHistory  = 100 // played audio kept for concealment
	concealCapacity = 700 // capacity; a packet lasts at most 120 ms
	concealHold     = 10  // concealed at full level; fades afterwards
	concealEnd      = 60  // silent from here on
	concealBlend    = 4   // cross-fade from concealment back to audio
)

// NewConcealBuffer returns a buffer of silence for a sample rate, Hz.
func NewConcealBuffer(rate int) ConcealBuffer {
	past := rate * concealHistory / 1000
	return ConcealBuffer{rate: rate, Buf: make([]int16, past, rate*concealCapacity/1000), head: past}
}

// Samples returns the number of samples of n milliseconds.
func (t *ConcealBuffer) Samples(n int) int { return n * t.rate / 1000 }

// Pending returns the number of samples that are still to be played.
func (t *ConcealBuffer) Pending() int { return len(t.Buf) - t.head }

// Read moves len(dst) samples to dst. The caller checks pending first.
func (t *ConcealBuffer) Read(dst []int16) {
	t.head += copy(dst, t.Buf[t.head:])
	if past := t.Samples(concealHistory); t.head > 4*past {
		n := copy(t.Buf, t.Buf[t.head-past:])
		t.Buf, t.head = t.Buf[:n], past
	}
}

// BlendIn is called after real samples were appended from position from on. After a concealed gap it cross-fades from
// the concealment into them.
func (t *ConcealBuffer) BlendIn(from int) {
	if t.concealed == 0 {
		return
	}
	n := min(t.Samples(concealBlend), len(t.Buf)-from)
	for i := range n {
		old := int(t.concealSample(from+i, t.concealed+i))
		t.Buf[from+i] = int16(old + (int(t.Buf[from+i])-old)*(i+1)/n)
	}
	t.concealed = 0
}

// Conceal appends n samples in place of lost ones. It repeats the last pitch period and fades it out.
func (t *ConcealBuffer) Conceal(n int) {
	if t.concealed == 0 {
		t.pitchLag = t.pitchPeriod(len(t.Buf))
	}
	for range n {
		t.Buf = append(t.Buf, t.concealSample(len(t.Buf), t.concealed))
		t.concealed++
	}
}

// concealSample returns sample n of a gap, which is to be stored at buffer position at.
func (t *ConcealBuffer) concealSample(at, n int) int16 {
	hold, end := t.Samples(concealHold), t.Samples(concealEnd)
	if n >= end {
		return 0
	}
	i := at - n - t.pitchLag + n%t.pitchLag // the gap began at at-n
	if i < 0 || i >= len(t.Buf) {
		return 0
	}
	v := int(t.Buf[i])
	if n > hold {
		v = v * (end - n) / (end - hold)
	}
	return int16(v)
}

// AppendSilence appends n zero samples for time in which the sender transmitted nothing.
func (t *ConcealBuffer) AppendSilence(n int) {
	for range n {
		t.Buf = append(t.Buf, 0)
	}
	t.concealed = t.Samples(concealEnd)
	t.pitchLag = t.Samples(5)
}

// pitchPeriod returns the period, 2.5 to 15 ms, with the highest autocorrelation before position at, in samples.
func (t *ConcealBuffer) pitchPeriod(at int) int {
	step, window := max(t.rate/8000, 1), t.Samples(10)
	least, most := t.Samples(5)/2, min(t.Samples(15), at-window)
	best, lag := float32(-1), t.Samples(5)
	for l := least; l <= most; l += step {
		var cross, energy float32
		for i := at - window; i < at; i += step {
			x, y := float32(t.Buf[i]), float32(t.Buf[i-l])
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

// RemovePeriod removes one pitch period of the pending samples and returns its length. It returns 0 if too few
// samples are pending.
func (t *ConcealBuffer) RemovePeriod() int {
	lag := t.pitchPeriod(t.head)
	if t.Pending() < 2*lag {
		return 0
	}
	y := t.Buf[t.head:]
	for i := range lag {
		y[i] = int16(int(y[i]) + (int(y[i+lag])-int(y[i]))*(i+1)/lag)
	}
	copy(y[lag:], y[2*lag:])
	t.Buf = t.Buf[:len(t.Buf)-lag]
	return lag
}

// RepeatPeriod repeats one pitch period and returns its length. It returns 0 if too few samples are pending or the
// buffer is full.
func (t *ConcealBuffer) RepeatPeriod() int {
	lag := t.pitchPeriod(t.head)
	if t.Pending() < lag || len(t.Buf)+lag > cap(t.Buf) {
		return 0
	}
	t.Buf = t.Buf[:len(t.Buf)+lag]
	y := t.Buf[t.head:]
	copy(y[lag:], y[:len(y)-lag])
	x := t.Buf[t.head-lag:]
	for i := range lag { // cross-fade from the natural continuation back to the samples before it
		y[i] = int16(int(y[i]) + (int(x[i])-int(y[i]))*(i+1)/lag)
	}
	return lag
}

// Discard drops n pending samples.
func (t *ConcealBuffer) Discard(n int) {
	n = min(n, t.Pending())
	copy(t.Buf[t.head:], t.Buf[t.head+n:])
	t.Buf = t.Buf[:len(t.Buf)-n]
}
