package codec

// G.711 (ITU-T G.711, 8 kHz, 8 bits): encoding, decoding and conversion between the laws. The tables are built at
// start and never change.

// SilenceByte returns the G.711 code word of zero.
func (c Codec) SilenceByte() byte {
	if c == PCMA {
		return 0xD5
	}
	return 0xFF
}

// Decode converts G.711 to 16-bit linear. It writes to dst if dst is large enough, otherwise to a new slice, and
// returns len(src) samples. Codecs other than PCMA are decoded as µ-law.
func (c Codec) Decode(dst []int16, src []byte) []int16 {
	if c == PCMA {
		return DecodeALaw(dst, src)
	}
	return DecodeULaw(dst, src)
}

// Encode converts 16-bit linear to G.711. It writes to dst if dst is large enough, otherwise to a new slice. Codecs
// other than PCMA are encoded as µ-law.
func (c Codec) Encode(dst []byte, src []int16) []byte {
	if c == PCMA {
		return EncodeALaw(dst, src)
	}
	return EncodeULaw(dst, src)
}

// EncodeULaw converts linear samples to µ-law. It writes to dst if dst is large enough, otherwise to a new slice.
func EncodeULaw(dst []byte, src []int16) []byte { return encode(dst, src, &ULawOf) }

// DecodeULaw converts µ-law to linear samples. It uses dst like EncodeULaw.
func DecodeULaw(dst []int16, src []byte) []int16 { return decode(dst, src, &LinearOfULaw) }

// EncodeALaw is EncodeULaw for A-law.
func EncodeALaw(dst []byte, src []int16) []byte { return encode(dst, src, &ALawOf) }

// DecodeALaw is DecodeULaw for A-law.
func DecodeALaw(dst []int16, src []byte) []int16 { return decode(dst, src, &LinearOfALaw) }

func encode(dst []byte, src []int16, table *[65536]byte) []byte {
	if cap(dst) < len(src) {
		dst = make([]byte, len(src))
	}
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = table[uint16(v)]
	}
	return dst
}

func decode(dst []int16, src []byte, table *[256]int16) []int16 {
	if cap(dst) < len(src) {
		dst = make([]int16, len(src))
	}
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = table[v]
	}
	return dst
}

// The code words and the samples of both laws. A sample indexes its table as a uint16.
var (
	LinearOfULaw = expandTable(expandULaw)
	LinearOfALaw = expandTable(expandALaw)
	ULawOf       = compressTable(compressULaw)
	ALawOf       = compressTable(compressALaw)

	// OtherLawOf[c] maps code words of c to those of the other law.
	OtherLawOf = [2][256]byte{PCMU: crossTable(&LinearOfULaw, &ALawOf), PCMA: crossTable(&LinearOfALaw, &ULawOf)}
)

func expandTable(f func(byte) int16) (t [256]int16) {
	for i := range t {
		t[i] = f(byte(i))
	}
	return t
}

func compressTable(f func(int16) byte) (t [65536]byte) {
	for i := range t {
		t[i] = f(int16(uint16(i)))
	}
	return t
}

func crossTable(from *[256]int16, to *[65536]byte) (t [256]byte) {
	for i := range t {
		t[i] = to[uint16(from[i])]
	}
	return t
}

// ITU-T G.711 table 2: µ = 255, 14-bit magnitude with a bias of 33 (132 in 16 bits).
const ulawBias, ulawClip = 132, 32635

func compressULaw(v int16) byte {
	m, sign := int(v), byte(0)
	if m < 0 {
		m, sign = -m, 0x80
	}
	m = min(m, ulawClip) + ulawBias
	exp := 7
	for mask := 0x4000; exp > 0 && m&mask == 0; mask >>= 1 {
		exp--
	}
	return ^(sign | byte(exp)<<4 | byte(m>>(exp+3))&0x0F)
}

func expandULaw(u byte) int16 {
	u = ^u
	m := (int(u&0x0F)<<3+ulawBias)<<(u>>4&7) - ulawBias
	if u&0x80 != 0 {
		m = -m
	}
	return int16(m)
}

// ITU-T G.711 table 1: A = 87.6, 13-bit magnitude, even bits inverted (0x55).
func compressALaw(v int16) byte {
	sign, m := byte(0x80), int(v)>>4 // 12-bit magnitude
	if m < 0 {
		sign, m = 0, ^m
	}
	exp := 0
	for s := m >> 4; s != 0; s >>= 1 {
		exp++
	}
	mantissa := m
	if exp > 0 {
		mantissa = m >> (exp - 1)
	}
	return (sign | byte(exp)<<4 | byte(mantissa)&0x0F) ^ 0x55
}

func expandALaw(a byte) int16 {
	a ^= 0x55
	exp, m := a>>4&7, int(a&0x0F)<<4+8
	if exp > 0 {
		m = (m + 0x100) << (exp - 1)
	}
	if a&0x80 == 0 {
		m = -m
	}
	return int16(m)
}

// TranscodeG711 replaces code words by those of a table such as OtherLawOf.
func TranscodeG711(b []byte, table *[256]byte) {
	for i, v := range b {
		b[i] = table[v]
	}
}
