package media

import "encoding/binary"

const rtpHeaderLen = 12

// rtpHeader holds the fields of an RTP header that the engine uses (RFC 3550 §5.1).
type rtpHeader struct {
	marker bool
	pt     uint8
	seq    uint16
	ts     uint32
	ssrc   uint32
}

// parseRTP reads the header and returns the range b[from:to] of the payload without CSRCs, extension and padding.
// from is at least rtpHeaderLen.
func parseRTP(b []byte) (h rtpHeader, from, to int, ok bool) {
	if len(b) < rtpHeaderLen || b[0]>>6 != 2 {
		return h, 0, 0, false
	}
	h = rtpHeader{b[1]&0x80 != 0, b[1] & 0x7F, binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])}
	from, to = rtpHeaderLen+4*int(b[0]&0x0F), len(b)
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

// put writes a plain header: version 2, no CSRC, extension or padding.
func (h rtpHeader) put(b []byte) {
	b[0], b[1] = 2<<6, h.pt
	if h.marker {
		b[1] |= 0x80
	}
	binary.BigEndian.PutUint16(b[2:], h.seq)
	binary.BigEndian.PutUint32(b[4:], h.ts)
	binary.BigEndian.PutUint32(b[8:], h.ssrc)
}

// A payloadKind is the meaning of a payload type.
type payloadKind uint8

const (
	kindPCMU payloadKind = iota // same values as Codec
	kindPCMA
	kindG722
	kindOpus
	kindEvent     // with a clock of 8000 Hz
	kindEventOpus // with the clock of Opus
	payloadKindCount
	kindNone payloadKind = 0xFF
)

func (k payloadKind) audio() bool { return k <= kindOpus }
func (k payloadKind) g711() bool  { return k <= kindPCMA }

// clock returns the kind's RTP clock in Hz.
func (k payloadKind) clock() int {
	switch {
	case k.audio():
		return Codec(k).clock()
	case k == kindEventOpus:
		return 48000
	}
	return 8000
}

func (k payloadKind) event() bool { return k == kindEvent || k == kindEventOpus }

func payloadKindOf(f Format) payloadKind {
	if c, ok := f.Codec(); ok {
		return payloadKind(c)
	}
	switch {
	case !f.isEvent():
		return kindNone
	case f.Rate == 48000:
		return kindEventOpus
	}
	return kindEvent
}
