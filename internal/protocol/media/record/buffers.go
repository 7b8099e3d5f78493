package record

import (
	"soniq/internal/protocol/media/wav"
	"sync"
)

// bufferPool reuses the buffers of finished recordings. A recording holds about 50 to 100 KB, and a busy server
// starts a thousand recordings a second. It is safe for concurrent use.
type bufferPool struct {
	size int
	pool sync.Pool // of *[]byte
}

// The pools of all recorders. The windows hold the channels of the two sample rates that recordings have.
var (
	ringBuffers    = bufferPool{size: 16 << 10}
	narrowWindows  = bufferPool{size: int(layout{wav.ULaw, 8000, false}.window())}
	wideWindows    = bufferPool{size: int(2 * layout{wav.PCM16, 16000, false}.window())}
	scratchBuffers = bufferPool{size: flushScratch}
)

// get returns a buffer with undefined content.
func (b *bufferPool) get() []byte {
	if kept, ok := b.pool.Get().(*[]byte); ok {
		return *kept
	}
	return make([]byte, b.size)
}

// put returns a buffer to the pool. The caller must not use it afterwards. Buffers of another size are dropped.
func (b *bufferPool) put(buf []byte) {
	if len(buf) == b.size {
		b.pool.Put(&buf)
	}
}

// windowPool returns the pool of the channel windows of a layout.
func (l layout) windowPool() *bufferPool {
	if l.encoding == wav.PCM16 {
		return &wideWindows
	}
	return &narrowWindows
}

// fillSilence overwrites samples of one channel with silence.
func (l layout) fillSilence(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, silenceBlocks[l.encoding]):]
	}
}

// silenceBlocks holds 4096 bytes of silence for each encoding.
var silenceBlocks = func() map[wav.Encoding][]byte {
	all := map[wav.Encoding][]byte{}
	for _, e := range []wav.Encoding{wav.PCM16, wav.ULaw, wav.ALaw} {
		b := make([]byte, 4096)
		for i := range b {
			b[i] = layout{encoding: e}.silenceByte()
		}
		all[e] = b
	}
	return all
}()
