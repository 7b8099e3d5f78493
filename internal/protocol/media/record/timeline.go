package record

import (
	"fmt"
	"soniq/internal/protocol/media/rtp"
)

// holdback is how late a packet may arrive before it must be patched into the file, in ms.
const holdback = 100

// flushChunk is how many samples per channel are written at once.
const flushChunk = 4096

// flushScratch is the buffer size for flushChunk samples of both channels in any layout.
const flushScratch = 4 * flushChunk

// position returns the position of now on the recording's timeline, in samples.
func (r *Recorder) position(now int64) int64 { return r.layout.samples(now - r.startTime) }

// drain moves the packets of the rings into the file, up to the holdback. scratch must have flushScratch bytes.
func (r *Recorder) drain(scratch []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.err != nil {
		return
	}
	now := r.owner.clock()
	r.placeAll(scratch)
	to := r.position(now) - r.layout.ms(holdback)
	if r.stopPosition > 0 {
		to = min(to, r.stopPosition)
	}
	r.flush(to, scratch)
}

// placeAll places all packets of both rings, in order of arrival.
func (r *Recorder) placeAll(scratch []byte) {
	for r.err == nil {
		a, okA := r.channels[0].ring.Next()
		b, okB := r.channels[1].ring.Next()
		switch {
		case okA && (!okB || a.Now <= b.Now):
			r.placeFrame(0, a, scratch)
			r.channels[0].ring.Release(a)
		case okB:
			r.placeFrame(1, b, scratch)
			r.channels[1].ring.Release(b)
		default:
			return
		}
	}
}

func (r *Recorder) placeFrame(i int, f rtp.Frame, scratch []byte) {
	l, w := &r.channels[i], r.layout.width()
	samples := l.encoder.convert(f)
	samples = samples[:min(int64(len(samples)), l.window()/2*w)]
	at := l.locate(f, r.position(f.Now))
	if at < r.startPosition { // audio from before the recording began
		samples, at = samples[min(int64(len(samples)), (r.startPosition-at)*w):], r.startPosition
	}
	if end := at + int64(len(samples))/w; end > r.flushed+l.window() {
		r.flush(end-l.window(), scratch)
	}
	if n := min(int64(len(samples)), (r.flushed-at)*w); n > 0 {
		r.patchLate(i, at, samples[:n])
		samples, at = samples[n:], at+n/w
	}
	l.write(at, samples)
}

// flush writes both channels up to a position.
func (r *Recorder) flush(to int64, scratch []byte) {
	for r.err == nil && r.flushed < to {
		n := int(min(to-r.flushed, flushChunk))
		w := int(r.layout.width())
		b := scratch[:2*w*n]
		r.channels[0].read(r.flushed, n, b)
		r.channels[1].read(r.flushed, n, b[w:])
		if _, err := r.file.WriteAt(b, r.layout.fileOffset(r.flushed)); err != nil {
			r.fail(fmt.Errorf("write recording: %w", err))
			return
		}
		r.flushed += int64(n)
	}
	r.dirty.Store(true)
	if r.tap != nil {
		r.tap.advance(r.flushed)
	}
}

// patchLate writes late samples of one channel between those of the other.
func (r *Recorder) patchLate(i int, at int64, samples []byte) {
	b := make([]byte, 2*len(samples)) // rare
	if _, err := r.file.ReadAt(b, r.layout.fileOffset(at)); err != nil {
		r.fail(fmt.Errorf("read recording: %w", err))
		return
	}
	for w := int(r.layout.width()); len(samples) > 0; samples = samples[w:] {
		k := len(b) - 2*len(samples)
		copy(b[k+i*w:], samples[:w])
	}
	if _, err := r.file.WriteAt(b, r.layout.fileOffset(at)); err != nil {
		r.fail(fmt.Errorf("write recording: %w", err))
		return
	}
	r.late++
	r.dirty.Store(true)
}

// fail stops the recorder with an error. The call continues without recording. The caller holds r.mu.
func (r *Recorder) fail(err error) {
	if r.err != nil {
		return
	}
	r.err = err
	r.owner.failed.Add(1)
	r.owner.log.Error("recording stopped", "path", r.cfg.Path, "error", err)
	for i, s := range r.streams {
		r.connect(i, s, false)
	}
	if r.cfg.OnError != nil {
		r.wg.Add(1)
		go func() {
			defer r.wg.Done()
			r.cfg.OnError(err)
		}()
	}
}
