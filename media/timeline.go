package media

import "fmt"

// holdback is how long a packet may be late before it is patched in: 100 ms.
const holdback = 800

// flushChunk is how many samples per channel are written at once.
const flushChunk = 4096

// position is where now lies on the recording's time line, in samples.
func (r *Recorder) position(now int64) int64 { return (now - r.start) / 125000 }

// drain moves what the rings hold into the file, up to the holdback. scratch has
// room for 2*flushChunk bytes.
func (r *Recorder) drain(scratch []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.err != nil {
		return
	}
	now := r.engine.clock()
	r.empty(scratch)
	r.flush(r.position(now)-holdback, scratch)
}

// empty places every frame of both rings, in order of arrival.
func (r *Recorder) empty(scratch []byte) {
	for r.err == nil {
		a, okA := r.lanes[0].ring.next()
		b, okB := r.lanes[1].ring.next()
		switch {
		case okA && (!okB || a.now <= b.now):
			r.place(0, a, scratch)
			r.lanes[0].ring.release(a)
		case okB:
			r.place(1, b, scratch)
			r.lanes[1].ring.release(b)
		default:
			return
		}
	}
}

func (r *Recorder) place(i int, f frame, scratch []byte) {
	l, words := &r.lanes[i], f.payload
	if Codec(f.kind) != l.codec {
		cross(words, &transcode[f.kind]) // in the ring: the frame is ours until released
	}
	words = words[:min(len(words), laneWindow/2)]
	at := l.locate(f, r.position(f.now))
	if at < 0 { // began before the recording did
		words, at = words[min(int64(len(words)), -at):], 0
	}
	if end := at + int64(len(words)); end > r.flushed+laneWindow {
		r.flush(end-laneWindow, scratch)
	}
	if n := min(int64(len(words)), r.flushed-at); n > 0 {
		r.patch(i, at, words[:n])
		words, at = words[n:], at+n
	}
	l.put(at, words)
}

// flush writes both channels up to a position.
func (r *Recorder) flush(to int64, scratch []byte) {
	for r.err == nil && r.flushed < to {
		n := int(min(to-r.flushed, flushChunk))
		b := scratch[:2*n]
		r.lanes[0].take(r.flushed, n, b)
		r.lanes[1].take(r.flushed, n, b[1:])
		if _, err := r.file.WriteAt(b, fileOffset(r.flushed)); err != nil {
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

// patch writes late words of one channel between those of the other.
func (r *Recorder) patch(i int, at int64, words []byte) {
	b := make([]byte, 2*len(words)) // rare
	if _, err := r.file.ReadAt(b, fileOffset(at)); err != nil {
		r.fail(fmt.Errorf("read recording: %w", err))
		return
	}
	for k, w := range words {
		b[2*k+i] = w
	}
	if _, err := r.file.WriteAt(b, fileOffset(at)); err != nil {
		r.fail(fmt.Errorf("write recording: %w", err))
		return
	}
	r.late++
	r.dirty.Store(true)
}

func fileOffset(at int64) int64 { return wavHeaderLen + 2*at }

// fail gives up: the call goes on without recording. r.mu is held.
func (r *Recorder) fail(err error) {
	if r.err != nil {
		return
	}
	r.err = err
	r.engine.recordFail.Add(1)
	r.engine.log.Error("recording stopped", "path", r.cfg.Path, "error", err)
	for i, s := range r.streams {
		r.wire(i, s, false)
	}
	if r.cfg.OnError != nil {
		r.wg.Add(1)
		go func() {
			defer r.wg.Done()
			r.cfg.OnError(err)
		}()
	}
}
