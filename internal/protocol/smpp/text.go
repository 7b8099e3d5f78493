package smpp

import (
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Alphabet is the meaning of data_coding 0, which differs between SMSCs and is not announced.
type Alphabet uint8

// Alphabets. GSMPacked is GSM 7 bit with eight characters in seven octets; with all others a character is one octet.
const (
	GSM Alphabet = iota
	GSMPacked
	Latin1
	ASCII
)

// LongMode is the encoding of texts that are longer than one message.
type LongMode uint8

// Modes: parts with a user data header and a reference of one or two octets (23.040 §9.2.3.24), parts with SAR
// optional parameters (§5.3.2.22), or the whole text in message_payload, which the SMSC splits.
const (
	UDH8 LongMode = iota
	UDH16
	SAR
	Payload
)

// TextSettings configures the encoding of texts.
type TextSettings struct {
	Default Alphabet // of data_coding 0
	// GSMAsIA5 reads data_coding 1 as GSM 7 bit, like the smpp package of npm. Otherwise it is ASCII.
	GSMAsIA5 bool
	Long     LongMode
}

// Values of data_coding (§5.2.19).
const (
	codingDefault  = 0x00
	codingIA5      = 0x01
	codingLatin1   = 0x03
	codingCyrillic = 0x06
	codingHebrew   = 0x07
	codingUCS2     = 0x08
)

// textEncoding is the encoding of received octets.
type textEncoding uint8

const (
	binaryOctets textEncoding = iota
	gsmOctets
	gsmPacked
	latin1Octets
	asciiOctets
	cyrillicOctets
	hebrewOctets
	ucs2Octets
)

// encodingOf returns the encoding of a data_coding: values up to 15 according to §5.2.19, those above according to
// 3GPP 23.038 §4.
func (t TextSettings) encodingOf(coding uint8) textEncoding {
	switch {
	case coding == codingDefault:
		return [...]textEncoding{gsmOctets, gsmPacked, latin1Octets, asciiOctets}[t.Default&3]
	case coding == codingIA5 && t.GSMAsIA5:
		return gsmOctets
	case coding < 0x10:
		return map[uint8]textEncoding{codingIA5: asciiOctets, codingLatin1: latin1Octets, codingCyrillic: cyrillicOctets,
			codingHebrew: hebrewOctets, codingUCS2: ucs2Octets}[coding]
	case coding < 0x80:
		return t.generalEncoding(coding >> 2 & 3)
	case coding >= 0xc0 && coding < 0xe0:
		return t.generalEncoding(0)
	case coding >= 0xe0 && coding < 0xf0:
		return ucs2Octets
	case coding >= 0xf0:
		return t.generalEncoding(coding >> 2 & 1)
	}
	return binaryOctets
}

// generalEncoding returns the encoding of the two alphabet bits (23.038 §4).
func (t TextSettings) generalEncoding(bits uint8) textEncoding {
	switch {
	case bits == 2:
		return ucs2Octets
	case bits != 0:
		return binaryOctets
	case t.Default == GSMPacked:
		return gsmPacked
	}
	return gsmOctets
}

// Decode decodes a text; ok is false if the coding is binary, or if the octets are no text in it.
func (t TextSettings) Decode(coding uint8, b []byte) (text string, ok bool) {
	k := t.encodingOf(coding)
	if k == gsmPacked {
		b, k = unpack(b, 0), gsmOctets
	}
	return k.decode(b)
}

// decode decodes octets. ok is false for octets that the encoding does not have, for half a character of UCS-2, and for
// a NUL, which texts cannot contain. NULs at the end are dropped: some senders terminate texts.
func (k textEncoding) decode(b []byte) (text string, ok bool) {
	switch k {
	case gsmOctets:
		return decodeGSM(b), isBelow(b, 0x80)
	case latin1Octets:
		return withoutNUL(decodeLatin1(b), true)
	case asciiOctets:
		return withoutNUL(decodeLatin1(b), isBelow(b, 0x80))
	case cyrillicOctets:
		text, _ = charmap.ISO8859_5.NewDecoder().String(string(b))
		return withoutNUL(text, true)
	case hebrewOctets:
		text, _ = charmap.ISO8859_8.NewDecoder().String(string(b))
		return withoutNUL(text, !strings.ContainsRune(text, utf8.RuneError))
	case ucs2Octets:
		text, ok = decodeUCS2(b)
		return withoutNUL(text, ok)
	}
	return "", false
}

func withoutNUL(text string, ok bool) (string, bool) {
	text = strings.TrimRight(text, "\x00")
	return text, ok && strings.IndexByte(text, 0) < 0
}

// isBelow reports whether all octets are below a limit.
func isBelow(b []byte, limit byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c >= limit })
}

func decodeLatin1(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		s.WriteRune(rune(c))
	}
	return s.String()
}

// decodeUCS2 decodes UCS-2 with surrogate pairs. ok is false if half a pair or half a character is left.
func decodeUCS2(b []byte) (text string, ok bool) {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = uint16(b[2*i])<<8 | uint16(b[2*i+1])
	}
	runes := utf16.Decode(units)
	ok = len(b)%2 == 0
	for at := 0; at < len(units) && ok; at++ {
		if r := rune(units[at]); utf16.IsSurrogate(r) {
			ok = at+1 < len(units) && utf16.DecodeRune(r, rune(units[at+1])) != utf8.RuneError
			at++
		}
	}
	return string(runes), ok
}
