package rtp

import (
	"encoding/binary"
	"sync/atomic"
)

// Ring passes packets from a packet loop to a slower reader. It has one producer and one consumer, no lock, and
// allocates nothing. If it is full, the packet is dropped and counted.
type Ring struct {
	buf     []byte // length is a power of two
	head    atomic.Uint32
	tail    atomic.Uint32
	Dropped atomic.Uint64
}

// A Frame is one packet in a ring. payload is valid until the frame is released.
type Frame struct {
	Header
	Kind    Kind
	Now     int64
	Payload []byte
	size    uint32
}

const (
	frameHeader = 24
	frameSkip   = 0xFFFF // instead of a length: the rest of the buffer is unused
)

// NewRing returns a ring of size bytes, a power of two.
func NewRing(size int) *Ring { return NewRingIn(make([]byte, size)) }

// NewRingIn returns a ring that uses a buffer. Its length is a power of two.
func NewRingIn(buf []byte) *Ring { return &Ring{buf: buf} }

// TakeBuffer removes the buffer from the ring and returns it. The ring must not be used afterwards.
func (r *Ring) TakeBuffer() []byte {
	buf := r.buf
	r.buf = nil
	return buf
}

func frameSize(payload int) uint32 { return uint32(frameHeader+payload+7) &^ 7 }

// Push appends a packet. Only the producer calls it. It returns false if the ring is full.
func (r *Ring) Push(h Header, k Kind, payload []byte, now int64) bool {
	head, size, need := r.head.Load(), uint32(len(r.buf)), frameSize(len(payload))
	at, skip := head&(size-1), uint32(0)
	if at+need > size {
		skip = size - at
	}
	if head+skip+need-r.tail.Load() > size {
		r.Dropped.Add(1)
		return false
	}
	if skip > 0 {
		binary.LittleEndian.PutUint16(r.buf[at:], frameSkip)
		at = 0
	}
	b := r.buf[at : at+need]
	le := binary.LittleEndian
	le.PutUint16(b[0:], uint16(len(payload)))
	b[2], b[3] = byte(k), 0
	if h.Marker {
		b[3] = 1
	}
	le.PutUint16(b[4:], h.Seq)
	le.PutUint32(b[8:], h.TS)
	le.PutUint32(b[12:], h.SSRC)
	le.PutUint64(b[16:], uint64(now))
	copy(b[frameHeader:], payload)
	r.head.Store(head + skip + need)
	return true
}

// Next returns the oldest frame, which stays until it is released. Only the consumer calls it.
func (r *Ring) Next() (f Frame, ok bool) {
	for {
		tail := r.tail.Load()
		if tail == r.head.Load() {
			return Frame{}, false
		}
		at := tail & uint32(len(r.buf)-1)
		le, b := binary.LittleEndian, r.buf[at:]
		n := le.Uint16(b)
		if n == frameSkip {
			r.tail.Store(tail + uint32(len(b)))
			continue
		}
		f.Marker, f.Seq, f.TS, f.SSRC = b[3] == 1, le.Uint16(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:])
		f.Kind, f.Now = Kind(b[2]), int64(le.Uint64(b[16:]))
		f.Payload, f.size = b[frameHeader:frameHeader+int(n)], frameSize(int(n))
		return f, true
	}
}

// Release frees the frame that next returned.
func (r *Ring) Release(f Frame) { r.tail.Store(r.tail.Load() + f.size) }
