package codec

import (
	"math"
	"testing"
)

func TestG711_CodeWordsRoundTrip(t *testing.T) {
	t.Parallel()
	for i := range 256 {
		u := byte(i)
		if got := ULawOf[uint16(LinearOfULaw[u])]; got != u && !(u == 0x7F && got == 0xFF) { // two zeros
			t.Errorf("µ-law %#x → %d → %#x", u, LinearOfULaw[u], got)
		}
		if got := ALawOf[uint16(LinearOfALaw[u])]; got != u {
			t.Errorf("A-law %#x → %d → %#x", u, LinearOfALaw[u], got)
		}
	}
}

func TestG711_KnownValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		codec Codec
		code  byte
		pcm   int16
	}{
		{PCMU, 0x00, -32124}, {PCMU, 0x80, 32124}, {PCMU, 0xFF, 0}, {PCMU, 0x9F, 8316}, // G.711 tables 2a, 2b
		{PCMA, 0x2A, -32256}, {PCMA, 0xAA, 32256}, {PCMA, 0xD5, 8}, {PCMA, 0x55, -8},
	} {
		if got := c.codec.Decode(nil, []byte{c.code})[0]; got != c.pcm {
			t.Errorf("%v %#x = %d, want %d", c.codec, c.code, got, c.pcm)
		}
	}
}

func TestG711_ErrorWithinHalfStep(t *testing.T) {
	t.Parallel()
	for v := -32635; v <= 32635; v++ {
		for _, c := range []Codec{PCMU, PCMA} {
			got := c.Decode(nil, c.Encode(nil, []int16{int16(v)}))[0]
			if d := math.Abs(float64(int(got) - v)); d > math.Max(16, (math.Abs(float64(v))+132)/32) {
				t.Fatalf("%v %d came back as %d", c, v, got)
			}
		}
	}
}
