package media

import (
	"context"
	"os"
	"sync/atomic"
	"time"
)

// A Chunk is a piece of both channels at the same time. The slices are valid
// until the tap returns.
type Chunk struct {
	At          time.Duration // position in the recording
	Left, Right []byte        // mono, one byte per sample at 8 kHz
	Codec       Codec
}

// tap gives a live listener the recording while it grows. It reads the file back
// at the listener's own pace: a slow listener falls behind and loses nothing,
// and nobody waits for it.
type tap struct {
	file  *os.File
	codec Codec
	f     func(Chunk)

	ready atomic.Int64 // samples in the file
	wake  chan struct{}
	last  chan struct{} // closed: ready is final
	quit  chan struct{}
	done  chan struct{}
}

// tapChunk is the longest chunk: half a second.
const tapChunk = 4000

func startTap(file *os.File, c Codec, f func(Chunk)) *tap {
	t := &tap{file: file, codec: c, f: f, wake: make(chan struct{}, 1),
		last: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{})}
	go t.run()
	return t
}

// advance says how many samples can be read.
func (t *tap) advance(to int64) {
	t.ready.Store(to)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *tap) run() {
	defer close(t.done)
	buf := make([]byte, 4*tapChunk)
	at := int64(0)
	for final := false; !final; {
		select {
		case <-t.quit:
			return
		case <-t.wake:
		case <-t.last:
			final = true
		}
		for to := t.ready.Load(); at < to; {
			n, ok := t.hand(at, min(to-at, tapChunk), buf)
			if !ok {
				return
			}
			at += n
		}
	}
}

// hand reads n samples per channel and gives them to the listener.
func (t *tap) hand(at, n int64, buf []byte) (int64, bool) {
	select {
	case <-t.quit:
		return 0, false
	default:
	}
	both, left, right := buf[:2*n], buf[2*n:3*n], buf[3*n:4*n]
	if _, err := t.file.ReadAt(both, fileOffset(at)); err != nil {
		return 0, false // the recorder fails on the same disk and says so
	}
	for i := range left {
		left[i], right[i] = both[2*i], both[2*i+1]
	}
	t.f(Chunk{At: time.Duration(at) * time.Second / recordRate, Left: left, Right: right, Codec: t.codec})
	return n, true
}

// finish waits until the listener has had everything, or ctx ends: then it is
// given up after the chunk it has.
func (t *tap) finish(ctx context.Context) {
	close(t.last)
	select {
	case <-t.done:
	case <-ctx.Done():
		close(t.quit)
	}
}

func (t *tap) cancel() {
	close(t.quit)
	<-t.done
}
