package smpp

// Segment identifies a part of a concatenated message. The zero value is a single message.
type Segment struct {
	Reference       uint16
	Wide            bool // the reference has 16 bits
	Total, Sequence uint8
}

// udh returns the user data header of a part (23.040 §9.2.3.24.1 and .8).
func (s Segment) udh() []byte {
	if s.Wide {
		return []byte{6, 8, 4, byte(s.Reference >> 8), byte(s.Reference), s.Total, s.Sequence}
	}
	return []byte{5, 0, 3, byte(s.Reference), s.Total, s.Sequence}
}

// valid reports whether the numbers are plausible; if not, they must be ignored (23.040 §9.2.3.24.1).
func (s Segment) valid() bool { return s.Total > 1 && s.Sequence > 0 && s.Sequence <= s.Total }

// segment returns the segment of a message, the length of its header, and its text without the header. ok is false if
// the header is longer than the message.
func (m *Message) segment() (s Segment, header int, text []byte, ok bool) {
	text = m.content()
	if m.ESMClass&udhi != 0 {
		if len(text) == 0 || int(text[0]) >= len(text) {
			return Segment{}, 0, nil, false
		}
		header = int(text[0]) + 1
		s, ok = parseUDH(text[1:header])
		text = text[header:]
	} else {
		s, ok = m.sarSegment(), true
	}
	if !s.valid() {
		s = Segment{}
	}
	return s, header, text, ok
}

// parseUDH returns the concatenation element of a user data header, and ignores all others.
func parseUDH(b []byte) (s Segment, ok bool) {
	for len(b) > 0 {
		if len(b) < 2 || len(b)-2 < int(b[1]) {
			return Segment{}, false
		}
		id, v := b[0], b[2:2+int(b[1])]
		switch {
		case id == 0 && len(v) == 3:
			s = Segment{Reference: uint16(v[0]), Total: v[1], Sequence: v[2]}
		case id == 8 && len(v) == 4:
			s = Segment{Reference: uint16(v[0])<<8 | uint16(v[1]), Wide: true, Total: v[2], Sequence: v[3]}
		}
		b = b[2+len(v):]
	}
	return s, true
}

// sarSegment returns the segment in the SAR optional parameters.
func (m *Message) sarSegment() Segment {
	reference, ok := m.TLVs.Number(TagSARReference)
	total, _ := m.TLVs.Number(TagSARTotal)
	sequence, _ := m.TLVs.Number(TagSARSequence)
	if !ok || total > 255 || sequence > 255 {
		return Segment{}
	}
	return Segment{Reference: uint16(reference), Wide: true, Total: uint8(total), Sequence: uint8(sequence)}
}
