package transcript

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Encoding is the encoding of samples in a recording.
type Encoding uint8

// Encodings of recordings.
const (
	PCM16 Encoding = iota // 16-bit little-endian linear
	PCMU                  // G.711 mu-law
	PCMA                  // G.711 A-law
)

// Format describes audio with interleaved channels: first that of the party that called, then that of the called one.
type Format struct {
	Encoding Encoding
	Rate     int  // samples per second and channel
	Channels int  // 1 or 2
	Outbound bool // the organisation called
}

// sampleBytes returns the size of one sample of one channel.
func (f Format) sampleBytes() int {
	if f.Encoding == PCM16 {
		return 2
	}
	return 1
}

// frameBytes returns the size of one sample of every channel.
func (f Format) frameBytes() int { return f.sampleBytes() * f.Channels }

// ms returns the time of a sample position in milliseconds.
func (f Format) ms(position int64) int { return int(position * 1000 / int64(f.Rate)) }

// valid returns an error for formats that the recogniser does not support.
func (f Format) valid() error {
	if f.Rate < 8000 || f.Rate > 48000 || f.Channels < 1 || f.Channels > 2 || f.Encoding > PCMA {
		return fmt.Errorf("audio format %+v is not supported", f)
	}
	return nil
}

// decode converts raw samples of one channel to linear ones.
func (f Format) decode(raw []byte) []int16 {
	if f.Encoding == PCM16 {
		out := make([]int16, len(raw)/2)
		for i := range out {
			out[i] = int16(binary.LittleEndian.Uint16(raw[2*i:]))
		}
		return out
	}
	table := &muLaw
	if f.Encoding == PCMA {
		table = &aLaw
	}
	out := make([]int16, len(raw))
	for i, b := range raw {
		out[i] = table[b]
	}
	return out
}

// channel appends the raw samples of one channel of interleaved frames to dst.
func (f Format) channel(dst, frames []byte, channel int) []byte {
	size, step := f.sampleBytes(), f.frameBytes()
	for i := channel * size; i+size <= len(frames); i += step {
		dst = append(dst, frames[i:i+size]...)
	}
	return dst
}

// energy returns the mean power of raw samples of one channel, in dB above one unit.
func (f Format) energy(raw []byte) float64 {
	var sum float64
	n := len(raw) / f.sampleBytes()
	switch f.Encoding {
	case PCM16:
		for i := 0; i+2 <= len(raw); i += 2 {
			v := float64(int16(binary.LittleEndian.Uint16(raw[i:])))
			sum += v * v
		}
	case PCMU:
		for _, b := range raw {
			v := float64(muLaw[b])
			sum += v * v
		}
	default:
		for _, b := range raw {
			v := float64(aLaw[b])
			sum += v * v
		}
	}
	return 10 * math.Log10(sum/float64(max(n, 1))+1)
}

// muLaw and aLaw are the decoding tables of ITU-T G.711.
var muLaw, aLaw = muLawTable(), aLawTable()

func muLawTable() (t [256]int16) {
	for i := range t {
		b := ^uint8(i)
		v := (int(b&15)<<3+132)<<(b>>4&7) - 132
		if b&0x80 != 0 {
			v = -v
		}
		t[i] = int16(v)
	}
	return t
}

func aLawTable() (t [256]int16) {
	for i := range t {
		b := uint8(i) ^ 0x55
		v := int(b&15)<<4 + 8
		if e := b >> 4 & 7; e > 0 {
			v = (v + 256) << (e - 1)
		}
		if b&0x80 == 0 {
			v = -v
		}
		t[i] = int16(v)
	}
	return t
}

// readChannel reads one channel of a part of a recording; from and to are sample positions.
func readChannel(r io.ReaderAt, f Format, channel int, from, to int64) ([]byte, error) {
	step := int64(f.frameBytes())
	frames := make([]byte, (to-from)*step)
	n, err := r.ReadAt(frames, from*step)
	if err != nil && (err != io.EOF || n == 0) {
		return nil, fmt.Errorf("read recording at sample %d: %w", from, err)
	}
	return f.channel(make([]byte, 0, n/f.Channels), frames[:n], channel), nil
}

// Silence overwrites frames with silence.
func (f Format) Silence(frames []byte) {
	quiet := byte(0)
	switch f.Encoding {
	case PCMU:
		quiet = 0xFF
	case PCMA:
		quiet = 0xD5
	}
	for i := range frames {
		frames[i] = quiet
	}
}
