package smpp

import (
	"errors"
	"unicode/utf16"
)

// ErrTooLong means that a text does not fit into 255 parts, or into one PDU with message_payload.
var ErrTooLong = errors.New("smpp: the text is too long")

const udhi = 0x40 // esm_class: a user data header precedes the text (§5.2.12)

// Part is the content of one PDU of a text.
type Part struct {
	ESMClass, DataCoding uint8
	ShortMessage         []byte
	TLVs                 TLVs
}

// encodedText is a text before it is split: its octets, and the end of each character.
type encodedText struct {
	coding          uint8
	octets          []byte
	packed          bool
	ends, units     []int // of each character: end of its octets, and its number of septets or UCS-2 units
	single, perPart int   // capacity in septets or units of a single message, and of each of several parts
}

// Parts splits a text without splitting characters. If all characters are in the GSM 7 bit alphabet (and in that of
// the SMSC), the limits are 160 septets, or 153 in each of several parts. Otherwise it is UCS-2 with 70 or 67 units.
// Parts of one text have the same reference.
func (t TextSettings) Parts(text string, reference uint16) ([]Part, error) {
	e, ok := t.encodeGSM(text)
	if !ok {
		e = t.encodeUCS2(text)
	}
	total := 0
	for _, n := range e.units {
		total += n
	}
	if total <= e.single {
		return []Part{{DataCoding: e.coding, ShortMessage: e.body(0, len(e.octets), 0)}}, nil
	}
	if t.Long == Payload {
		return e.payload()
	}
	cuts := e.cut()
	if len(cuts) > 255 {
		return nil, ErrTooLong
	}
	parts, from := make([]Part, len(cuts)), 0
	for i, to := range cuts {
		s := Segment{Reference: reference, Wide: t.Long != UDH8, Total: uint8(len(cuts)), Sequence: uint8(i + 1)}
		parts[i] = e.makePart(s, t.Long, from, to)
		from = to
	}
	return parts, nil
}

func (t TextSettings) encodeGSM(text string) (encodedText, bool) {
	e := encodedText{single: 160, perPart: 153, packed: t.Default == GSMPacked}
	if t.Long == UDH16 {
		e.perPart = 152
	}
	for _, r := range text {
		s, ok := gsmSeptets[r]
		if !ok || t.Default == Latin1 && r > 0xff || t.Default == ASCII && r > 0x7f {
			return e, false
		}
		e.units = append(e.units, len(s))
		switch t.Default {
		case Latin1, ASCII:
			e.octets = append(e.octets, byte(r))
		default:
			e.octets = append(e.octets, s...)
		}
		e.ends = append(e.ends, len(e.octets))
	}
	return e, true
}

func (t TextSettings) encodeUCS2(text string) encodedText {
	e := encodedText{coding: codingUCS2, single: 70, perPart: 67}
	if t.Long == UDH16 {
		e.perPart = 66
	}
	for _, r := range text {
		units := utf16.AppendRune(nil, r)
		for _, u := range units {
			e.octets = append(e.octets, byte(u>>8), byte(u))
		}
		e.units = append(e.units, len(units))
		e.ends = append(e.ends, len(e.octets))
	}
	return e
}

// cut returns the end of the octets of each part.
func (e encodedText) cut() []int {
	var cuts []int
	room, last := e.perPart, 0
	for i, n := range e.units {
		if n > room {
			cuts, room = append(cuts, last), e.perPart
		}
		room, last = room-n, e.ends[i]
	}
	return append(cuts, last)
}

// body returns the octets of a range, packed after a header of the given length if the text is packed.
func (e encodedText) body(from, to, header int) []byte {
	if !e.packed || e.coding != codingDefault {
		return e.octets[from:to:to]
	}
	return pack(e.octets[from:to], fillBits(header))
}

// fillBits returns the number of bits that fill up the last septet of a header.
func fillBits(header int) int { return (7 - header*8%7) % 7 }

func (e encodedText) payload() ([]Part, error) {
	b := e.body(0, len(e.octets), 0)
	if len(b) > MaxPDU-1024 {
		return nil, ErrTooLong
	}
	return []Part{{DataCoding: e.coding, TLVs: TLVs{{TagMessagePayload, b}}}}, nil
}

func (e encodedText) makePart(s Segment, l LongMode, from, to int) Part {
	if l == SAR {
		return Part{DataCoding: e.coding, ShortMessage: e.body(from, to, 0), TLVs: TLVs{wordTLV(TagSARReference, s.Reference),
			octetTLV(TagSARTotal, s.Total), octetTLV(TagSARSequence, s.Sequence)}}
	}
	h := s.udh()
	return Part{ESMClass: udhi, DataCoding: e.coding, ShortMessage: append(h, e.body(from, to, len(h))...)}
}
