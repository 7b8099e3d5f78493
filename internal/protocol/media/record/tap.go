package record

import (
	"context"
	"encoding/binary"
	"os"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/wav"
)

// A Chunk is a piece of both channels of the same time. The slices are valid until the tap function returns.
type Chunk struct {
	At          time.Duration // position in the recording
	Left, Right []byte        // mono, one byte per sample at 8 kHz; nil in wide band
	Codec       codec.Codec   // law of Left and Right
	Wide        *WideChunk    // nil in narrow band
}

// Interleave appends both channels as the recording file has them: left and right alternating, G.711, or 16-bit
// little-endian in wide band.
func (c Chunk) Interleave(dst []byte) []byte {
	if c.Wide == nil {
		for i, l := range c.Left {
			dst = append(dst, l, c.Right[i])
		}
		return dst
	}
	for i, l := range c.Wide.Left {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(l))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(c.Wide.Right[i]))
	}
	return dst
}

// A WideChunk holds the audio of a chunk of a wide-band recording: mono, 16 kHz.
type WideChunk struct {
	Left, Right []int16
}

// tap passes the growing recording to a live listener. It reads the file back at the listener's pace: a slow listener
// falls behind, loses nothing and delays no other component.
type tap struct {
	file   *os.File
	layout layout
	f      func(Chunk)
	from   int64 // first position

	ready      atomic.Int64 // samples in the file
	wake       chan struct{}
	readyFinal chan struct{} // closed when ready is final
	quit       chan struct{}
	done       chan struct{}
}

// maxTapSamples is the longest chunk in samples: half a second of narrow band.
const maxTapSamples = 4000

func startTap(r *Recorder, f func(Chunk)) *tap {
	t := &tap{file: r.file, layout: r.layout, from: r.flushed, f: f, wake: make(chan struct{}, 1),
		readyFinal: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{})}
	go t.run()
	return t
}

// advance sets how many samples can be read.
func (t *tap) advance(to int64) {
	t.ready.Store(to)
	signal(t.wake)
}

func (t *tap) run() {
	defer close(t.done)
	b := newTapBuffer(t.layout)
	at := t.from
	for final := false; !final; {
		select {
		case <-t.quit:
			return
		case <-t.wake:
		case <-t.readyFinal:
			final = true
		}
		for to := t.ready.Load(); at < to; {
			n, ok := t.deliver(at, min(to-at, maxTapSamples), b)
			if !ok {
				return
			}
			at += n
		}
	}
}

// tapBuffer holds the buffers of a tap, so that chunks allocate nothing.
type tapBuffer struct {
	both        []byte
	left, right []byte
	wide        WideChunk
}

func newTapBuffer(l layout) *tapBuffer {
	b := &tapBuffer{both: make([]byte, 2*l.width()*maxTapSamples)}
	if l.encoding == wav.PCM16 {
		b.wide = WideChunk{make([]int16, maxTapSamples), make([]int16, maxTapSamples)}
	} else {
		b.left, b.right = make([]byte, maxTapSamples), make([]byte, maxTapSamples)
	}
	return b
}

// deliver reads n samples per channel and passes them to the listener.
func (t *tap) deliver(at, n int64, b *tapBuffer) (int64, bool) {
	select {
	case <-t.quit:
		return 0, false
	default:
	}
	both := b.both[:2*t.layout.width()*n]
	if _, err := t.file.ReadAt(both, t.layout.fileOffset(at)); err != nil {
		return 0, false // the recorder gets the same disk error and reports it
	}
	t.f(t.chunk(at, int(n), both, b))
	return n, true
}

func (t *tap) chunk(at int64, n int, both []byte, b *tapBuffer) Chunk {
	c := Chunk{At: time.Duration(at) * time.Second / time.Duration(t.layout.rate), Codec: t.layout.law()}
	if t.layout.encoding == wav.PCM16 {
		c.Wide = &WideChunk{b.wide.Left[:n], b.wide.Right[:n]}
		for i := range n {
			c.Wide.Left[i] = int16(binary.LittleEndian.Uint16(both[4*i:]))
			c.Wide.Right[i] = int16(binary.LittleEndian.Uint16(both[4*i+2:]))
		}
		return c
	}
	c.Left, c.Right = b.left[:n], b.right[:n]
	for i := range n {
		c.Left[i], c.Right[i] = both[2*i], both[2*i+1]
	}
	return c
}

// finish waits until the listener has received everything, or ctx ends. In the second case the tap ends after the
// current chunk.
func (t *tap) finish(ctx context.Context) {
	close(t.readyFinal)
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
