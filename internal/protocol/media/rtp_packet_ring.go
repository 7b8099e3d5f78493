package media

import (
	"encoding/binary"
	"sync/atomic"
)

// packetRing passes packets from a packet loop to a slower reader. It has one producer and one consumer, no lock, and
// allocates nothing. If it is full, the packet is dropped and counted.
type packetRing struct {
	buf     []byte // length is a power of two
	head    atomic.Uint32
	tail    atomic.Uint32
	dropped atomic.Uint64
}

// A ringFrame is one packet in a ring. payload is valid until the frame is released.
type ringFrame struct {
	rtpHeader
	kind    payloadKind
	now     int64
	payload []byte
	size    uint32
}

const (
	ringFrameHeader = 24
	ringFrameSkip   = 0xFFFF // instead of a length: the rest of the buffer is unused
)

func newPacketRing(size int) *packetRing { return &packetRing{buf: make([]byte, size)} }

func ringFrameSize(payload int) uint32 { return uint32(ringFrameHeader+payload+7) &^ 7 }

// push appends a packet. Only the producer calls it. It returns false if the ring is full.
func (r *packetRing) push(h rtpHeader, k payloadKind, payload []byte, now int64) bool {
	head, size, need := r.head.Load(), uint32(len(r.buf)), ringFrameSize(len(payload))
	at, skip := head&(size-1), uint32(0)
	if at+need > size {
		skip = size - at
	}
	if head+skip+need-r.tail.Load() > size {
		r.dropped.Add(1)
		return false
	}
	if skip > 0 {
		binary.LittleEndian.PutUint16(r.buf[at:], ringFrameSkip)
		at = 0
	}
	b := r.buf[at : at+need]
	le := binary.LittleEndian
	le.PutUint16(b[0:], uint16(len(payload)))
	b[2], b[3] = byte(k), 0
	if h.marker {
		b[3] = 1
	}
	le.PutUint16(b[4:], h.seq)
	le.PutUint32(b[8:], h.ts)
	le.PutUint32(b[12:], h.ssrc)
	le.PutUint64(b[16:], uint64(now))
	copy(b[ringFrameHeader:], payload)
	r.head.Store(head + skip + need)
	return true
}

// next returns the oldest frame, which stays until it is released. Only the consumer calls it.
func (r *packetRing) next() (f ringFrame, ok bool) {
	for {
		tail := r.tail.Load()
		if tail == r.head.Load() {
			return ringFrame{}, false
		}
		at := tail & uint32(len(r.buf)-1)
		le, b := binary.LittleEndian, r.buf[at:]
		n := le.Uint16(b)
		if n == ringFrameSkip {
			r.tail.Store(tail + uint32(len(b)))
			continue
		}
		f.marker, f.seq, f.ts, f.ssrc = b[3] == 1, le.Uint16(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:])
		f.kind, f.now = payloadKind(b[2]), int64(le.Uint64(b[16:]))
		f.payload, f.size = b[ringFrameHeader:ringFrameHeader+int(n)], ringFrameSize(int(n))
		return f, true
	}
}

// release frees the frame that next returned.
func (r *packetRing) release(f ringFrame) { r.tail.Store(r.tail.Load() + f.size) }
