package media

// lane puts one channel's packets on the recording's time line.
//
// A position is a count of 8 kHz samples since the recording began, on the
// engine's clock, the same for both channels. Within one source positions follow
// its RTP timestamps, so jitter does not move audio; where the source's time
// line lies is learned from when its packets arrive, the earliest counting most:
// nothing arrives before it is sent.
type lane struct {
	ring  *ring
	codec Codec
	buf   []byte // code words from the recorder's flushed position on, circular

	anchored    bool
	ssrc        uint32
	lastTS      uint32
	ext         int64 // lastTS, unwrapped
	offset      int64 // position minus unwrapped timestamp
	short, long leastDelay
}

// Limits in samples at 8 kHz.
const (
	laneWindow = 8192 // a second: what a lane holds before it is written

	maxLate    = 2 * 8000      // later than this is a time line that stood still
	maxEarly   = 8000 * 3 / 10 // earlier than this is one that jumped
	talkspurt  = 480           // a marked packet further off than 60 ms begins a new time line
	earlySlack = 240           // 30 ms: some senders send two packets at once
)

func newLane(c Codec) lane {
	l := lane{ring: newRing(16 << 10), codec: c, buf: make([]byte, laneWindow)}
	for i := range l.buf {
		l.buf[i] = c.silence()
	}
	l.short = leastDelay{span: 500e6, limit: 800}
	l.long = leastDelay{span: 3000e6, limit: 160}
	return l
}

// locate returns where the frame belongs; arrival is the position of its arrival.
func (l *lane) locate(f frame, arrival int64) int64 {
	if !l.anchored || f.ssrc != l.ssrc {
		return l.anchor(f, arrival)
	}
	l.ext += int64(int32(f.ts - l.lastTS))
	l.lastTS = f.ts
	late := arrival - (l.ext + l.offset)
	if late > maxLate || late < -maxEarly || f.marker && (late > talkspurt || late < -talkspurt) {
		return l.anchor(f, arrival)
	}
	if late < -earlySlack {
		l.shift(late)
		return arrival
	}
	at := l.ext + l.offset
	for _, w := range []*leastDelay{&l.short, &l.long} {
		if d := w.add(late, f.now); d != 0 {
			l.shift(d) // for the packets to come
			break
		}
	}
	return at
}

// anchor begins a new time line at the packet's arrival.
func (l *lane) anchor(f frame, arrival int64) int64 {
	l.anchored, l.ssrc, l.lastTS, l.ext = true, f.ssrc, f.ts, int64(f.ts)
	l.offset = arrival - l.ext
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

// put writes code words at positions that are inside the window.
func (l *lane) put(at int64, words []byte) {
	for i, w := range words {
		l.buf[(at+int64(i))&(laneWindow-1)] = w
	}
}

// take removes n code words from position at into every second byte of out.
func (l *lane) take(at int64, n int, out []byte) {
	s := l.codec.silence()
	for i := range n {
		p := &l.buf[(at+int64(i))&(laneWindow-1)]
		out[2*i] = *p
		*p = s
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
