package smpp

import (
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
)

// An Alphabet is what a centre takes data_coding 0 for; centres differ, and do not say.
type Alphabet uint8

// Alphabets. Packed is GSM 7 bit with eight characters in seven octets; with all others a character is an octet.
const (
	GSM Alphabet = iota
	GSMPacked
	Latin1
	ASCII
)

// A Long is how texts travel that are longer than a message.
type Long uint8

// Ways of long texts: in parts that a header joins, with a reference of one or of two octets (23.040 §9.2.3.24), in parts that
// optional parameters join (§5.3.2.22), or whole in message_payload, so that the centre cuts them.
const (
	UDH8 Long = iota
	UDH16
	SAR
	Payload
)

// Text is how a centre wants its texts.
type Text struct {
	Default Alphabet // of data_coding 0
	// GSMAsIA5 has data_coding 1 read as GSM 7 bit, as npm's smpp means it. Else it is ASCII.
	GSMAsIA5 bool
	Long     Long
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

// kind is how octets are to be read.
type kind uint8

const (
	binaryOctets kind = iota
	gsmOctets
	gsmPacked
	latin1Octets
	asciiOctets
	cyrillicOctets
	hebrewOctets
	ucs2Octets
)

// kind says what a data_coding means: values up to 15 as §5.2.19 has them, those above as 3GPP 23.038 §4.
func (t Text) kind(coding uint8) kind {
	switch {
	case coding == codingDefault:
		return [...]kind{gsmOctets, gsmPacked, latin1Octets, asciiOctets}[t.Default&3]
	case coding == codingIA5 && t.GSMAsIA5:
		return gsmOctets
	case coding < 0x10:
		return map[uint8]kind{codingIA5: asciiOctets, codingLatin1: latin1Octets, codingCyrillic: cyrillicOctets, codingHebrew: hebrewOctets,
			codingUCS2: ucs2Octets}[coding]
	case coding < 0x80:
		return t.general(coding >> 2 & 3)
	case coding >= 0xc0 && coding < 0xe0:
		return t.general(0)
	case coding >= 0xe0 && coding < 0xf0:
		return ucs2Octets
	case coding >= 0xf0:
		return t.general(coding >> 2 & 1)
	}
	return binaryOctets
}

// general is the alphabet of two bits (23.038 §4).
func (t Text) general(bits uint8) kind {
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

// Decode reads a text; ok is false where the coding says that it is none.
func (t Text) Decode(coding uint8, b []byte) (text string, ok bool) {
	k := t.kind(coding)
	if k == gsmPacked {
		b, k = unpack(b, 0), gsmOctets
	}
	return k.decode(b)
}

func (k kind) decode(b []byte) (text string, ok bool) {
	switch k {
	case gsmOctets:
		return decodeGSM(b), true
	case latin1Octets:
		return latin(b, 0xff), true
	case asciiOctets:
		return latin(b, 0x7f), true
	case cyrillicOctets:
		text, _ = charmap.ISO8859_5.NewDecoder().String(string(b))
		return text, true
	case hebrewOctets:
		text, _ = charmap.ISO8859_8.NewDecoder().String(string(b))
		return text, true
	case ucs2Octets:
		return decodeUCS2(b), true
	}
	return "", false
}

func latin(b []byte, highest byte) string {
	var s strings.Builder
	for _, c := range b {
		if c > highest {
			s.WriteRune('\ufffd')
			continue
		}
		s.WriteRune(rune(c))
	}
	return s.String()
}

// decodeUCS2 reads pairs of surrogates as what they stand for; half a character at the end is left out.
func decodeUCS2(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = uint16(b[2*i])<<8 | uint16(b[2*i+1])
	}
	return string(utf16.Decode(units))
}
