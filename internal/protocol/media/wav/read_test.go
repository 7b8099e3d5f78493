package wav

import (
	"encoding/binary"
	"math"
	"testing"
)

// file returns a WAV file of some chunks. stated is the size that RIFF states, -1 for the true one.
func file(stated int, chunks ...[]byte) []byte {
	body := []byte("WAVE")
	for _, c := range chunks {
		body = append(body, c...)
	}
	if stated < 0 {
		stated = len(body)
	}
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(stated)), body...)
}

// chunk returns a chunk. size is the size that it states, -1 for the true one.
func chunk(id string, size int, body ...byte) []byte {
	if size < 0 {
		size = len(body)
	}
	b := binary.LittleEndian.AppendUint32([]byte(id), uint32(size))
	if len(body)%2 == 1 {
		body = append(body, 0)
	}
	return append(b, body...)
}

// formatOf returns the body of a fmt chunk of one channel at 8000 Hz.
func formatOf(tag, bits int, more ...byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint16(nil, uint16(tag))
	b = le.AppendUint16(b, 1)
	b = le.AppendUint32(b, 8000)
	b = le.AppendUint32(b, uint32(8000*bits/8))
	b = le.AppendUint16(b, uint16(bits/8))
	return append(le.AppendUint16(b, uint16(bits)), more...)
}

// TestDecode_Reports proves that files are read that other programs could not read:
// https://github.com/waywardgeek/sonic/pull/19 (LIST before data)
// https://github.com/zenwerk/go-wave/pull/1 (the same)
// https://github.com/pjsip/pjproject/issues/2073 (chunks behind data)
// https://github.com/jstrait/wavefile/issues/37 (longer fmt chunks)
// https://github.com/jstrait/wavefile/issues/33 (the same)
// https://github.com/naudio/NAudio/issues/688 (sizes of 0 and 0xFFFFFFFF)
// https://github.com/rs1729/RS/issues/39 (the same)
// https://github.com/nysthi/nysthi/issues/203 (floating point)
// https://github.com/pdeljanov/Symphonia/issues/247 (floating point in 40 bytes)
func TestDecode_Reports(t *testing.T) {
	t.Parallel()
	const unknown = math.MaxUint32
	pcm := []byte{0, 0x10, 0, 0xF0}
	data, list := chunk("data", -1, pcm...), chunk("LIST", -1, []byte("INFOISFT\x05\x00\x00\x00Lavf5")...)
	fmt16 := chunk("fmt ", -1, formatOf(1, 16)...)
	extensible := func(tag byte, more int) []byte {
		return append([]byte{byte(22 + more), 0, 16, 0, 4, 0, 0, 0, tag, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71},
			make([]byte, more)...)
	}
	float := func(v ...float32) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	for name, b := range map[string][]byte{
		"LIST before data":      file(-1, fmt16, list, data),
		"LIST before fmt":       file(-1, list, fmt16, data),
		"LIST behind data":      file(-1, fmt16, data, list),
		"sizes unknown":         file(unknown, fmt16, chunk("data", unknown, pcm...)),
		"sizes of zero":         file(0, fmt16, chunk("data", 0, pcm...)),
		"sizes of sox":          file(0x7FFFF024, fmt16, chunk("data", 0x7FFFF000, pcm...)),
		"size of the header":    file(36, fmt16, chunk("data", 0, pcm...)),
		"fmt of 18 bytes":       file(-1, chunk("fmt ", -1, formatOf(1, 16, 0, 0)...), data),
		"fmt of 30 bytes":       file(-1, chunk("fmt ", -1, formatOf(1, 16, make([]byte, 14)...)...), data),
		"extensible":            file(-1, chunk("fmt ", -1, formatOf(0xFFFE, 16, extensible(1, 0)...)...), data),
		"extensible, longer":    file(-1, chunk("fmt ", -1, formatOf(0xFFFE, 16, extensible(1, 10)...)...), data),
		"8 bits":                file(-1, chunk("fmt ", -1, formatOf(1, 8)...), chunk("data", -1, 0x90, 0x70)),
		"24 bits":               file(-1, chunk("fmt ", -1, formatOf(1, 24)...), chunk("data", -1, 9, 0, 0x10, 9, 0, 0xF0)),
		"32 bits":               file(-1, chunk("fmt ", -1, formatOf(1, 32)...), chunk("data", -1, 9, 9, 0, 0x10, 9, 9, 0, 0xF0)),
		"float":                 file(-1, chunk("fmt ", -1, formatOf(3, 32)...), chunk("data", -1, float(0.125, -0.125)...)),
		"float in 40 bytes":     file(-1, chunk("fmt ", -1, formatOf(3, 32, make([]byte, 24)...)...), chunk("data", -1, float(0.125, -0.125)...)),
		"extensible with float": file(-1, chunk("fmt ", -1, formatOf(0xFFFE, 32, extensible(3, 0)...)...), chunk("data", -1, float(0.125, -0.125)...)),
	} {
		w, err := Decode(b)
		if err != nil || w.Rate != 8000 || len(w.PCM) != 1 || len(w.PCM[0]) != 2 || w.PCM[0][0] != 0x1000 || w.PCM[0][1] != -0x1000 {
			t.Errorf("%s: %v, %v", name, w, err)
		}
	}
	loud, err := Decode(file(-1, chunk("fmt ", -1, formatOf(3, 32)...), chunk("data", -1, float(7, -7)...)))
	if err != nil || loud.PCM[0][0] != 32767 || loud.PCM[0][1] != -32768 {
		t.Errorf("too loud: %v, %v", loud, err)
	}
	if w, err := Decode(file(-1, fmt16, chunk("data", -1), list)); err != nil || len(w.PCM[0]) != 0 {
		t.Errorf("no samples before LIST: %v, %v", w, err)
	}
	for _, bits := range []int{0, 12, 64} {
		for _, tag := range []int{1, 3} {
			if _, err := Decode(file(-1, chunk("fmt ", -1, formatOf(tag, bits)...), data)); err == nil {
				t.Errorf("format %d with %d bits is read", tag, bits)
			}
		}
	}
}
