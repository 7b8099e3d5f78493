package smpp

import "strings"

// gsmBasic is the alphabet of GSM 03.38 §6.2.1 in order; the escape, 0x1b, stands for itself.
const gsmBasic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿" +
	"abcdefghijklmnopqrstuvwxyzäöñüà"

// gsmExtension is the extension table (§6.2.1.1): pairs of a character and the octet that follows the escape.
const gsmExtension = "\f\x0a^\x14{\x28}\x29\\\x2f[\x3c~\x3d]\x3e|\x40€\x65"

const escape = 0x1b

var (
	gsmBasicRunes = []rune(gsmBasic)
	gsmExtended   = newGSMExtended()
	gsmSeptets    = newGSMSeptets()
)

func newGSMExtended() map[byte]rune {
	m := map[byte]rune{}
	for pair := []rune(gsmExtension); len(pair) > 0; pair = pair[2:] {
		m[byte(pair[1])] = pair[0]
	}
	return m
}

func newGSMSeptets() map[rune]string {
	m := map[rune]string{}
	for i, r := range gsmBasicRunes {
		m[r] = string([]byte{byte(i)})
	}
	for b, r := range gsmExtended {
		m[r] = string([]byte{escape, b})
	}
	delete(m, escape)
	return m
}

// decodeGSM decodes septets, one per octet. A character missing in the extension table is read from the basic one
// (§6.2.1.1). A lone escape is a space, an octet above 0x7f the replacement character.
func decodeGSM(b []byte) string {
	var s strings.Builder
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] > 0x7f:
			s.WriteRune('\ufffd')
		case b[i] != escape:
			s.WriteRune(gsmBasicRunes[b[i]])
		case i+1 == len(b) || b[i+1] == escape || b[i+1] > 0x7f:
			s.WriteByte(' ')
			i += min(1, len(b)-1-i)
		default:
			i++
			r, ok := gsmExtended[b[i]]
			if !ok {
				r = gsmBasicRunes[b[i]]
			}
			s.WriteRune(r)
		}
	}
	return s.String()
}

// pack packs septets (§6.1.2.1), after the bits that fill up the last septet of a header. If seven bits are left,
// they are a carriage return, so that they are not read as an @ (§6.1.2.3.1).
func pack(septets []byte, fill int) []byte {
	bits := fill + 7*len(septets)
	if bits%8 == 1 {
		septets, bits = append(append([]byte{}, septets...), '\r'), bits+7
	}
	out := make([]byte, (bits+7)/8)
	for i, v := range septets {
		at := fill + 7*i
		out[at/8] |= v << (at % 8)
		if at%8 > 1 {
			out[at/8+1] |= v >> (8 - at%8)
		}
	}
	return out
}

// unpack reverts pack.
func unpack(b []byte, fill int) []byte {
	n := max(0, (8*len(b)-fill)/7)
	out := make([]byte, n)
	for i := range out {
		at := fill + 7*i
		v := b[at/8] >> (at % 8)
		if at%8 > 1 {
			v |= b[at/8+1] << (8 - at%8)
		}
		out[i] = v & 0x7f
	}
	if n > 0 && 8*len(b)-fill == 7*n && out[n-1] == '\r' {
		return out[:n-1]
	}
	return out
}
