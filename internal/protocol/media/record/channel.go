package record

import (
	"soniq/internal/protocol/media/rtp"
	"soniq/internal/protocol/media/wav"
)

// recordingChannel puts one channel's packets on the timeline of the recording.
//
// A position counts samples of the file since the recording began. It follows the engine's clock and is the same for
// both channels. Within one source positions follow its RTP timestamps, so that jitter does not move audio. The
// offset between the source's timestamps and the recording is learned from packet arrivals. The earliest arrivals
// count most, because no packet arrives before it is sent.
type recordingChannel struct {
	layout
	ring    *rtp.Ring
	encoder fileEncoder
	buf     []byte // samples from the recorder's flushed position on, circular

	anchored              bool
	ssrc                  uint32
	rtpClock              int64 // RTP clock of the source, Hz
	lastTS                uint32
	extTS                 int64 // lastTS, unwrapped
	offset                int64 // position minus unwrapped timestamp
	shortDelay, longDelay minimumDelay
}

// Limits in ms.
const (
	maxLate    = 2000 // later packets mean that the timestamps stood still
	maxEarly   = 300  // earlier packets mean that the timestamps jumped
	talkspurt  = 60   // a marked packet with a larger deviation starts a new timeline
	earlySlack = 30   // tolerated earliness, because some senders send two packets at once
)

func newRecordingChannel(f layout) recordingChannel {
	l := recordingChannel{layout: f, ring: rtp.NewRingIn(ringBuffers.get()), encoder: fileEncoder{layout: f}, buf: f.windowPool().get()}
	f.fillSilence(l.buf)
	l.shortDelay = minimumDelay{span: 500e6, limit: f.ms(100)}
	l.longDelay = minimumDelay{span: 3000e6, limit: f.ms(20)}
	return l
}

// releaseBuffers returns the buffers of a finished recording to their pools.
func (l *recordingChannel) releaseBuffers() {
	ringBuffers.put(l.ring.TakeBuffer())
	l.windowPool().put(l.buf)
	l.buf = nil
}

// window returns the samples that a channel holds before they are written: about a second, as a power of two.
func (l layout) window() int64 { return 8192 * l.rate / 8000 }

// silenceByte returns the value of every byte of a silent sample.
func (l layout) silenceByte() byte {
	if l.encoding == wav.PCM16 {
		return 0
	}
	return l.law().SilenceByte()
}

// locate returns the position of a packet. arrival is the position of its arrival time.
func (l *recordingChannel) locate(f rtp.Frame, arrival int64) int64 {
	clock := int64(f.Kind.Clock())
	if !l.anchored || f.SSRC != l.ssrc || clock != l.rtpClock {
		l.rtpClock = clock
		return l.startTimeline(f, arrival)
	}
	l.extTS += int64(int32(f.TS - l.lastTS))
	l.lastTS = f.TS
	late := arrival - l.lastPosition()
	if late > l.ms(maxLate) || late < -l.ms(maxEarly) || f.Marker && (late > l.ms(talkspurt) || late < -l.ms(talkspurt)) {
		return l.startTimeline(f, arrival)
	}
	if late < -l.ms(earlySlack) {
		l.shiftTimeline(late)
		return arrival
	}
	at := l.lastPosition()
	for _, w := range []*minimumDelay{&l.shortDelay, &l.longDelay} {
		if d := w.add(late, f.Now); d != 0 {
			l.shiftTimeline(d) // applies to later packets
			break
		}
	}
	return at
}

// lastPosition returns the position of the last timestamp.
func (l *recordingChannel) lastPosition() int64 { return l.extTS*l.rate/l.rtpClock + l.offset }

// startTimeline starts a new timeline at the packet's arrival.
func (l *recordingChannel) startTimeline(f rtp.Frame, arrival int64) int64 {
	l.anchored, l.ssrc, l.lastTS, l.extTS, l.offset = true, f.SSRC, f.TS, int64(f.TS), 0
	l.offset = arrival - l.lastPosition()
	l.shortDelay.reset()
	l.longDelay.reset()
	return arrival
}

// shiftTimeline moves the timeline, because the clocks drift or the first packet was late.
func (l *recordingChannel) shiftTimeline(by int64) {
	l.offset += by
	l.shortDelay.reset()
	l.longDelay.reset()
}

// write stores samples at positions that are inside the window.
func (l *recordingChannel) write(at int64, samples []byte) {
	start := at * l.width() & int64(len(l.buf)-1)
	n := copy(l.buf[start:], samples)
	copy(l.buf, samples[n:])
}

// read moves n samples from position at to every second sample of out, and replaces them with silence.
func (l *recordingChannel) read(at int64, n int, out []byte) {
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
		l.fillSilence(from)
		k := len(from) / w
		if at, n = at+int64(k), n-k; n > 0 {
			out = out[2*len(from):]
		}
	}
}

// minimumDelay finds the least delay within a span of time. If it exceeds the limit, it is an offset and not jitter.
type minimumDelay struct {
	span  int64 // ns
	limit int64 // samples

	running bool
	since   int64
	least   int64
}

func (w *minimumDelay) reset() { w.running = false }

// add records a delay. It returns by how many samples to move the timeline, usually 0.
func (w *minimumDelay) add(late, now int64) int64 {
	if !w.running {
		w.running, w.since, w.least = true, now, late
	}
	w.least = min(w.least, late)
	if now-w.since < w.span {
		return 0
	}
	w.running = false
	if w.least > w.limit || w.least < -w.limit {
		return w.least
	}
	return 0
}
