package media

// lane puts one channel's packets on the recording's time line.
//
// A position is a count of samples of the file since the recording began, on the
// engine's clock, the same for both channels. Within one source positions follow
// its RTP timestamps, so jitter does not move audio; where the source's time
// line lies is learned from when its packets arrive, the earliest counting most:
// nothing arrives before it is sent.
type lane struct {
	layout
	ring   *ring
	script script
	buf    []byte // samples from the recorder's flushed position on, circular

	anchored    bool
	ssrc        uint32
	clock       int64 // of the time line, Hz
	lastTS      uint32
	ext         int64 // lastTS, unwrapped
	offset      int64 // position minus unwrapped timestamp
	short, long leastDelay
}

// Limits in ms.
const (
	maxLate    = 2000 // later than this is a time line that stood still
	maxEarly   = 300  // earlier than this is one that jumped
	talkspurt  = 60   // a marked packet further off than this begins a new time line
	earlySlack = 30   // some senders send two packets at once
)

func newLane(f layout) lane {
	l := lane{layout: f, ring: &ring{buf: rings.take()}, script: script{layout: f}, buf: f.windows().take()}
	f.hush(l.buf)
	l.short = leastDelay{span: 500e6, limit: f.ms(100)}
	l.long = leastDelay{span: 3000e6, limit: f.ms(20)}
	return l
}

// letGo gives back what the lane of a recording that is over worked with.
func (l *lane) letGo() {
	rings.put(l.ring.buf)
	l.windows().put(l.buf)
	l.ring.buf, l.buf = nil, nil
}

// window is what a lane holds before it is written: a second, as a power of two.
func (l layout) window() int64 { return 8192 * l.rate / 8000 }

// silence is every byte of a silent sample.
func (l layout) silence() byte {
	if l.encoding == PCM16 {
		return 0
	}
	return l.law().silence()
}

// locate returns where the frame belongs; arrival is the position of its arrival.
func (l *lane) locate(f frame, arrival int64) int64 {
	clock := int64(f.kind.clock())
	if !l.anchored || f.ssrc != l.ssrc || clock != l.clock {
		l.clock = clock
		return l.anchor(f, arrival)
	}
	l.ext += int64(int32(f.ts - l.lastTS))
	l.lastTS = f.ts
	late := arrival - l.at()
	if late > l.ms(maxLate) || late < -l.ms(maxEarly) || f.marker && (late > l.ms(talkspurt) || late < -l.ms(talkspurt)) {
		return l.anchor(f, arrival)
	}
	if late < -l.ms(earlySlack) {
		l.shift(late)
		return arrival
	}
	at := l.at()
	for _, w := range []*leastDelay{&l.short, &l.long} {
		if d := w.add(late, f.now); d != 0 {
			l.shift(d) // for the packets to come
			break
		}
	}
	return at
}

// at is where the last timestamp lies.
func (l *lane) at() int64 { return l.ext*l.rate/l.clock + l.offset }

// anchor begins a new time line at the packet's arrival.
func (l *lane) anchor(f frame, arrival int64) int64 {
	l.anchored, l.ssrc, l.lastTS, l.ext, l.offset = true, f.ssrc, f.ts, int64(f.ts), 0
	l.offset = arrival - l.at()
	l.short.reset()
	l.long.reset()
	return arrival
}

// shift moves the time line: clocks that drift apart, an anchor that was late.
func (l *lane) shift(by int64) {
	l.offset += by
	l.short.reset()
	l.long.reset()
}

// put writes samples at positions that are inside the window.
func (l *lane) put(at int64, samples []byte) {
	start := at * l.width() & int64(len(l.buf)-1)
	n := copy(l.buf[start:], samples)
	copy(l.buf, samples[n:])
}

// take removes n samples from position at into every second place of out.
func (l *lane) take(at int64, n int, out []byte) {
	w := int(l.width())
	for n > 0 {
		from := l.buf[int(at)*w&(len(l.buf)-1):]
		from = from[:min(len(from), n*w)]
		if w == 1 {
			for i, b := range from {
				out[2*i] = b
			}
		} else {
			for i := 0; i < len(from); i += 2 {
				out[2*i], out[2*i+1] = from[i], from[i+1]
			}
		}
		l.hush(from)
		k := len(from) / w
		if at, n = at+int64(k), n-k; n > 0 {
			out = out[2*len(from):]
		}
	}
}

// leastDelay finds the least delay within a span of time; beyond the limit it is
// no jitter but an offset.
type leastDelay struct {
	span  int64 // ns
	limit int64 // samples

	open  bool
	since int64
	least int64
}

func (w *leastDelay) reset() { w.open = false }

// add returns by how much the time line is to be moved, usually 0.
func (w *leastDelay) add(late, now int64) int64 {
	if !w.open {
		w.open, w.since, w.least = true, now, late
	}
	w.least = min(w.least, late)
	if now-w.since < w.span {
		return 0
	}
	w.open = false
	if w.least > w.limit || w.least < -w.limit {
		return w.least
	}
	return 0
}
