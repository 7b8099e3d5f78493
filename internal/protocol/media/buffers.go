package media

import "sync"

// buffers keeps those of recordings that are over for the next ones: a recording holds some 50 to 100 KB, and a busy switch begins a thousand of them a
// second.
type buffers struct {
	size int
	pool sync.Pool // of *[]byte
}

// What a recorder works with; the windows of lanes are those of the two rates at which is recorded.
var (
	rings   = buffers{size: 16 << 10}
	narrow  = buffers{size: int(layout{ULaw, 8000, false}.window())}
	wide    = buffers{size: int(2 * layout{PCM16, 16000, false}.window())}
	scratch = buffers{size: flushScratch}
)

// take gives a buffer with anything in it.
func (b *buffers) take() []byte {
	if kept, ok := b.pool.Get().(*[]byte); ok {
		return *kept
	}
	return make([]byte, b.size)
}

// put takes a buffer back that nobody uses any more.
func (b *buffers) put(buf []byte) {
	if len(buf) == b.size {
		b.pool.Put(&buf)
	}
}

// windows is where the windows of a layout come from.
func (l layout) windows() *buffers {
	if l.encoding == PCM16 {
		return &wide
	}
	return &narrow
}

// hush makes samples of one channel silent.
func (l layout) hush(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, silences[l.encoding]):]
	}
}

// silences are stretches of silence.
var silences = func() map[Encoding][]byte {
	all := map[Encoding][]byte{}
	for _, e := range []Encoding{PCM16, ULaw, ALaw} {
		b := make([]byte, 4096)
		for i := range b {
			b[i] = layout{encoding: e}.silence()
		}
		all[e] = b
	}
	return all
}()
