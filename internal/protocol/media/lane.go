package media

// recordingChannel puts one channel's packets on the timeline of the recording.
//
// A position counts samples of the file since the recording began. It follows the engine's clock and is the same for
// both channels. Within one source positions follow its RTP timestamps, so that jitter does not move audio. The
// offset between the source's timestamps and the recording is learned from packet arrivals. The earliest arrivals
// count most, because no packet arrives before it is sent.
type lane struct {
	layout
	ring   *ring
	script script
	buf    []byte // samples from the recorder's flushed position on, circular

	anchored    bool
	ssrc        uint32
	clock       int64 // RTP clock of the source, Hz
	lastTS      uint32
	ext         int64 // lastTS, unwrapped
	offset      int64 // position minus unwrapped timestamp
	short, long leastDelay
}

// Limits in ms.
const (
	maxLate    = 2000 // later packets mean that the timestamps stood still
	maxEarly   = 300  // earlier packets mean that the timestamps jumped
	talkspurt  = 60   // a marked packet with a larger deviation starts a new timeline
	earlySlack = 30   // tolerated earliness, because some senders send two packets at once
)

func newLane(f layout) lane {
	l := lane{layout: f, ring: &ring{buf: rings.take()}, script: script{layout: f}, buf: f.windows().take()}
	f.hush(l.buf)
	l.short = leastDelay{span: 500e6, limit: f.ms(100)}
	l.long = leastDelay{span: 3000e6, limit: f.ms(20)}
	return l
}

// releaseBuffers returns the buffers of a finished recording to their pools.
func (l *lane) letGo() {
	rings.put(l.ring.buf)
	l.windows().put(l.buf)
	l.ring.buf, l.buf = nil, nil
}

// window returns the samples that a channel holds before they are written: about a second, as a power of two.
func (l layout) window() int64 { return 8192 * l.rate / 8000 }

// silenceByte returns the value of every byte of a silent sample.
func (l layout) silence() byte {
	if l.encoding == PCM16 {
		return 0
	}
	return l.law().silence()
}

// locate returns the position of a packet. arrival is the position of its arrival time.
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
			l.shift(d) // applies to later packets
			break
		}
	}
	return at
}

// lastPosition returns the position of the last timestamp.
func (l *lane) at() int64 { return l.ext*l.rate/l.clock + l.offset }

// startTimeline starts a new timeline at the packet's arrival.
func (l *lane) anchor(f frame, arrival int64) int64 {
	l.anchored, l.ssrc, l.lastTS, l.ext, l.offset = true, f.ssrc, f.ts, int64(f.ts), 0
	l.offset = arrival - l.at()
	l.short.reset()
	l.long.reset()
	return arrival
}

// shiftTimeline moves the timeline, because the clocks drift or the first packet was late.
func (l *lane) shift(by int64) {
	l.offset += by
	l.short.reset()
	l.long.reset()
}

// write stores samples at positions that are inside the window.
func (l *lane) put(at int64, samples []byte) {
	start := at * l.width() & int64(len(l.buf)-1)
	n := copy(l.buf[start:], samples)
	copy(l.buf, samples[n:])
}

// read moves n samples from position at to every second sample of out, and replaces them with silence.
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

// minimumDelay finds the least delay within a span of time. If it exceeds the limit, it is an offset and not jitter.
type leastDelay struct {
	span  int64 // ns
	limit int64 // samples

	open  bool
	since int64
	least int64
}

func (w *leastDelay) reset() { w.open = false }

// add records a delay. It returns by how many samples to move the timeline, usually 0.
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
