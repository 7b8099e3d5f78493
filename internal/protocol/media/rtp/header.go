// Package rtp has the headers of RTP packets, rings that pass packets between goroutines, and the jitter buffer.
package rtp

import "encoding/binary"

import (
	"soniq/internal/protocol/media/sdp"
)

import (
	"soniq/internal/protocol/media/codec"
)

// HeaderLen is the length of a header without CSRCs and extension.
const HeaderLen = 12

// Header holds the fields of an RTP header that the engine uses (RFC 3550 §5.1).
type Header struct {
	Marker bool
	PT     uint8
	Seq    uint16
	TS     uint32
	SSRC   uint32
}

// Parse reads the header and returns the range b[from:to] of the payload without CSRCs, extension and padding.
// from is at least HeaderLen.
func Parse(b []byte) (h Header, from, to int, ok bool) {
	if len(b) < HeaderLen || b[0]>>6 != 2 {
		return h, 0, 0, false
	}
	h = Header{b[1]&0x80 != 0, b[1] & 0x7F, binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])}
	from, to = HeaderLen+4*int(b[0]&0x0F), len(b)
	if b[0]&0x10 != 0 { // RFC 3550 §5.3.1
		if len(b) < from+4 {
			return h, 0, 0, false
		}
		from += 4 + 4*int(binary.BigEndian.Uint16(b[from+2:]))
	}
	if b[0]&0x20 != 0 {
		to -= int(b[to-1])
	}
	return h, from, to, from <= to
}

// Put writes a plain header: version 2, no CSRC, extension or padding.
func (h Header) Put(b []byte) {
	b[0], b[1] = 2<<6, h.PT
	if h.Marker {
		b[1] |= 0x80
	}
	binary.BigEndian.PutUint16(b[2:], h.Seq)
	binary.BigEndian.PutUint32(b[4:], h.TS)
	binary.BigEndian.PutUint32(b[8:], h.SSRC)
}

// A Kind is the meaning of a payload type.
type Kind uint8

// The kinds of packets. The first ones have the values of the codecs.
const (
	KindPCMU Kind = iota // same values as Codec
	kindPCMA
	kindG722
	kindOpus
	KindEvent     // with a clock of 8000 Hz
	KindEventOpus // with the clock of Opus
	KindCount
	KindNone Kind = 0xFF
)

// IsAudio reports whether packets of this kind are audio.
func (k Kind) IsAudio() bool { return k <= kindOpus }

// IsG711 reports whether the audio is one of the two laws of G.711.
func (k Kind) IsG711() bool { return k <= kindPCMA }

// Clock returns the kind's RTP clock in Hz.
func (k Kind) Clock() int {
	switch {
	case k.IsAudio():
		return codec.Codec(k).Clock()
	case k == KindEventOpus:
		return 48000
	}
	return 8000
}

// IsEvent reports whether packets of this kind are RFC 4733 events.
func (k Kind) IsEvent() bool { return k == KindEvent || k == KindEventOpus }

// KindOf returns the kind of packets that a format has.
func KindOf(f sdp.Format) Kind {
	if c, ok := f.Codec(); ok {
		return Kind(c)
	}
	switch {
	case !f.IsEvent():
		return KindNone
	case f.Rate == 48000:
		return KindEventOpus
	}
	return KindEvent
}
