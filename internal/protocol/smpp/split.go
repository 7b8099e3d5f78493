package smpp

import (
	"errors"
	"unicode/utf16"
)

// ErrTooLong says that a text does not fit into 255 parts, or into one PDU where it travels whole.
var ErrTooLong = errors.New("smpp: the text is too long")

const udhi = 0x40 // esm_class: a header is before the text (§5.2.12)

// A Part is what one PDU carries of a text.
type Part struct {
	ESMClass, DataCoding uint8
	ShortMessage         []byte
	TLVs                 TLVs
}

// encoded is a text before it is cut: its octets, and where each character ends.
type encoded struct {
	coding      uint8
	octets      []byte
	packed      bool
	ends, units []int // of each character: where its octets end, and how many septets or UCS-2 units it takes on the air
	whole, part int   // how many of those fit into a message, and into each of several
}

// Parts cuts a text so that no character is split: GSM 7 bit where all of its characters are in that alphabet (and in the one
// that the centre wants), 160 septets or 153 in each of several parts, else UCS-2 with 70 or 67 units. Parts of one text
// have the same reference.
func (t Text) Parts(text string, reference uint16) ([]Part, error) {
	e, ok := t.encodeGSM(text)
	if !ok {
		e = t.encodeUCS2(text)
	}
	total := 0
	for _, n := range e.units {
		total += n
	}
	if total <= e.whole {
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
		parts[i] = e.join(s, t.Long, from, to)
		from = to
	}
	return parts, nil
}

func (t Text) encodeGSM(text string) (encoded, bool) {
	e := encoded{whole: 160, part: 153, packed: t.Default == GSMPacked}
	if t.Long == UDH16 {
		e.part = 152
	}
	for _, r := range text {
		s, ok := septetsOf[r]
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

func (t Text) encodeUCS2(text string) encoded {
	e := encoded{coding: codingUCS2, whole: 70, part: 67}
	if t.Long == UDH16 {
		e.part = 66
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

// cut says where the octets of each part end.
func (e encoded) cut() []int {
	var cuts []int
	room, last := e.part, 0
	for i, n := range e.units {
		if n > room {
			cuts, room = append(cuts, last), e.part
		}
		room, last = room-n, e.ends[i]
	}
	return append(cuts, last)
}

// body is the octets between two places, packed behind a header of so many octets where they are packed at all.
func (e encoded) body(from, to, header int) []byte {
	if !e.packed || e.coding != codingDefault {
		return e.octets[from:to:to]
	}
	return pack(e.octets[from:to], fillBits(header))
}

// fillBits is how many bits are left of a header's last septet.
func fillBits(header int) int { return (7 - header*8%7) % 7 }

func (e encoded) payload() ([]Part, error) {
	b := e.body(0, len(e.octets), 0)
	if len(b) > MaxPDU-1024 {
		return nil, ErrTooLong
	}
	return []Part{{DataCoding: e.coding, TLVs: TLVs{{TagMessagePayload, b}}}}, nil
}

func (e encoded) join(s Segment, l Long, from, to int) Part {
	if l == SAR {
		return Part{DataCoding: e.coding, ShortMessage: e.body(from, to, 0), TLVs: TLVs{wordTLV(TagSARReference, s.Reference),
			octetTLV(TagSARTotal, s.Total), octetTLV(TagSARSequence, s.Sequence)}}
	}
	h := s.header()
	return Part{ESMClass: udhi, DataCoding: e.coding, ShortMessage: append(h, e.body(from, to, len(h))...)}
}
