package media

// A track is sound that was played and sound that is to be played, one after the
// other, so that gaps can be filled from what went before and the speed be
// changed without a break.
type track struct {
	rate int
	buf  []int16
	head int // of what is to be played

	gap int // samples concealed without a break
	lag int // pitch period the gap is filled with
}

// Limits of a track in ms.
const (
	trackPast   = 100 // kept for concealment
	trackRoom   = 700 // in all; a packet is at most 120
	concealHold = 10  // filled at full level,
	concealEnd  = 60  // silent from here on
	blendTime   = 4   // from concealment back to sound
)

func newTrack(rate int) track {
	past := rate * trackPast / 1000
	return track{rate: rate, buf: make([]int16, past, rate*trackRoom/1000), head: past}
}

func (t *track) ms(n int) int { return n * t.rate / 1000 }

// waiting is how many samples are to be played.
func (t *track) waiting() int { return len(t.buf) - t.head }

// take moves len(dst) samples, which must be waiting, to dst.
func (t *track) take(dst []int16) {
	t.head += copy(dst, t.buf[t.head:])
	if past := t.ms(trackPast); t.head > 4*past {
		n := copy(t.buf, t.buf[t.head-past:])
		t.buf, t.head = t.buf[:n], past
	}
}

// sound is called after samples from position from on were appended: if they
// follow a gap they grow out of what filled it.
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

// conceal appends n samples in place of lost ones: the last pitch period again
// and again, fading.
func (t *track) conceal(n int) {
	if t.gap == 0 {
		t.lag = t.pitch(len(t.buf))
	}
	for range n {
		t.buf = append(t.buf, t.filler(len(t.buf), t.gap))
		t.gap++
	}
}

// filler is sample n of a gap, to stand at position at of the buffer.
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

// silence appends n samples of nothing: the sender had nothing to say.
func (t *track) silence(n int) {
	for range n {
		t.buf = append(t.buf, 0)
	}
	t.gap = t.ms(concealEnd)
	t.lag = t.ms(5)
}

// pitch is the period, 2.5 to 15 ms, with which the sound before at repeats best.
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

// shorten takes one period of what is to be played out, if enough is waiting,
// and returns its length.
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

// lengthen repeats one period, if enough is waiting, and returns its length.
func (t *track) lengthen() int {
	lag := t.pitch(t.head)
	if t.waiting() < lag || len(t.buf)+lag > cap(t.buf) {
		return 0
	}
	t.buf = t.buf[:len(t.buf)+lag]
	y := t.buf[t.head:]
	copy(y[lag:], y[:len(y)-lag])
	x := t.buf[t.head-lag:]
	for i := range lag { // from what follows naturally back to what goes before it
		y[i] = int16(int(y[i]) + (int(x[i])-int(y[i]))*(i+1)/lag)
	}
	return lag
}

// drop leaves out n samples that are to be played.
func (t *track) drop(n int) {
	n = min(n, t.waiting())
	copy(t.buf[t.head:], t.buf[t.head+n:])
	t.buf = t.buf[:len(t.buf)-n]
}
