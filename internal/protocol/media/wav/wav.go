// Package wav reads and writes WAV files of 16-bit PCM, µ-law and A-law.
package wav

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"soniq/internal/protocol/media/codec"
)

// Encoding is the sample encoding of a WAV file: the format tag of its fmt chunk, for those that are only read with the bits of a sample
// in the upper byte.
type Encoding uint16

// The encodings that Read and Write support (RFC 2361).
const (
	PCM16 Encoding = tagPCM
	ALaw  Encoding = 6
	ULaw  Encoding = 7
)

// The encodings that Read supports: what editors and speech synthesis write.
const (
	PCM8    = 8<<8 | tagPCM
	PCM24   = 24<<8 | tagPCM
	PCM32   = 32<<8 | tagPCM
	Float32 = 32<<8 | tagFloat
)

// Format tags.
const (
	tagPCM        Encoding = 1
	tagFloat      Encoding = 3
	tagExtensible Encoding = 0xFFFE
)

// Audio holds the audio of a RIFF file.
type Audio struct {
	Rate int       // samples per second
	PCM  [][]int16 // one slice per channel, of the same length
}

// HeaderLen is the size of the header that Header returns.
const HeaderLen = 58

// maxDataSize is the largest size of samples that a header can state.
const maxDataSize = 1<<32 - 1 - HeaderLen

// SampleBytes returns the size of a sample.
func (e Encoding) SampleBytes() int {
	switch e {
	case PCM16:
		return 2
	case ALaw, ULaw:
		return 1
	}
	return int(e >> 11)
}

// Header returns RIFF, fmt (18 bytes), fact and data headers for dataLen bytes of audio.
func Header(e Encoding, channels, rate int, dataLen int64) [HeaderLen]byte {
	var h [HeaderLen]byte
	le := binary.LittleEndian
	frame := channels * e.SampleBytes()
	n := uint32(min(dataLen, maxDataSize))
	copy(h[0:], "RIFF")
	le.PutUint32(h[4:], HeaderLen-8+n+n&1)
	copy(h[8:], "WAVEfmt ")
	le.PutUint32(h[16:], 18)
	le.PutUint16(h[20:], uint16(e))
	le.PutUint16(h[22:], uint16(channels))
	le.PutUint32(h[24:], uint32(rate))
	le.PutUint32(h[28:], uint32(rate*frame))
	le.PutUint16(h[32:], uint16(frame))
	le.PutUint16(h[34:], uint16(8*e.SampleBytes()))
	copy(h[38:], "fact")
	le.PutUint32(h[42:], 4)
	le.PutUint32(h[46:], n/uint32(frame)) // samples per channel
	copy(h[50:], "data")
	le.PutUint32(h[54:], n)
	return h
}

// Write writes w to path and replaces an existing file. Channels must have the same length.
func Write(path string, w Audio, e Encoding) error {
	body, err := interleave(w, e)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	h := Header(e, len(w.PCM), w.Rate, int64(len(body)))
	if len(body)%2 == 1 {
		body = append(body, 0) // RIFF chunks are padded to even length
	}
	return os.WriteFile(path, append(h[:], body...), 0o600)
}

func interleave(w Audio, e Encoding) ([]byte, error) {
	if len(w.PCM) == 0 || len(w.PCM) > 2 || w.Rate <= 0 {
		return nil, fmt.Errorf("want 1 or 2 channels at a positive rate, got %d at %d", len(w.PCM), w.Rate)
	}
	n, ch, size := len(w.PCM[0]), len(w.PCM), e.SampleBytes()
	out := make([]byte, n*ch*size)
	for c, pcm := range w.PCM {
		if len(pcm) != n {
			return nil, errors.New("channels differ in length")
		}
		for i, v := range pcm {
			PutSample(out[(i*ch+c)*size:], v, e)
		}
	}
	return out, nil
}

// PutSample writes a sample to b.
func PutSample(b []byte, v int16, e Encoding) {
	switch e {
	case ULaw:
		b[0] = codec.ULawOf[uint16(v)]
	case ALaw:
		b[0] = codec.ALawOf[uint16(v)]
	default:
		binary.LittleEndian.PutUint16(b, uint16(v))
	}
}

// Sample reads a sample from b.
func Sample(b []byte, e Encoding) int16 {
	switch e {
	case ULaw:
		return codec.LinearOfULaw[b[0]]
	case ALaw:
		return codec.LinearOfALaw[b[0]]
	case PCM8:
		return (int16(b[0]) - 128) << 8
	case PCM24:
		return int16(binary.LittleEndian.Uint16(b[1:]))
	case PCM32:
		return int16(binary.LittleEndian.Uint16(b[2:]))
	case Float32:
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		return int16(max(-32768, min(v*32768, 32767))) // NaN becomes 0, or a bound
	default:
		return int16(binary.LittleEndian.Uint16(b))
	}
}

// Read reads a file of one or two channels. A data chunk truncated by a crash is read as far as it goes.
func Read(path string) (Audio, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Audio{}, fmt.Errorf("read WAV: %w", err)
	}
	w, err := Decode(b)
	if err != nil {
		return Audio{}, fmt.Errorf("read WAV %s: %w", path, err)
	}
	return w, nil
}

// Decode parses a file, as Read does.
func Decode(b []byte) (Audio, error) {
	l, err := Scan(bytes.NewReader(b))
	if err != nil {
		return Audio{}, err
	}
	return l.decode(b[l.Offset:][:l.Size]), nil
}

// Layout describes where a file has its samples. Those of several channels alternate.
type Layout struct {
	Encoding Encoding
	Channels int   // 1 or 2
	Rate     int   // samples per second
	Offset   int64 // of the first sample in the file
	Size     int64 // of all samples in bytes; what a crash cut off is not counted
}

// Scan reads the headers of a file up to its samples, whatever the size of the file.
func Scan(r io.ReadSeeker) (Layout, error) {
	end, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return Layout{}, err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return Layout{}, err
	}
	var h [12]byte
	if _, err := io.ReadFull(r, h[:]); err != nil || string(h[:4]) != "RIFF" || string(h[8:]) != "WAVE" {
		return Layout{}, errors.New("not a RIFF WAVE file")
	}
	var l Layout
	stated := int64(binary.LittleEndian.Uint32(h[4:])) + 8
	for at := int64(len(h)); at+8 <= end; {
		if _, err := io.ReadFull(r, h[:8]); err != nil {
			return l, err
		}
		id, n := string(h[:4]), int64(binary.LittleEndian.Uint32(h[4:]))
		at += 8
		switch id {
		case "fmt ":
			if err := l.readFormat(r, min(n, end-at)); err != nil {
				return l, err
			}
		case "data":
			if n == 0 && stated < end {
				n = maxDataSize // written to a pipe: neither size is known
			}
			return l.withData(at, n, end)
		}
		if at, err = r.Seek(min(at+n+n&1, end), io.SeekStart); err != nil {
			return l, err
		}
	}
	return l, errors.New("no data chunk")
}

// withData completes a layout by the data chunk at a position. A file over 4 GB claims the largest size that the header can hold.
func (l Layout) withData(at, n, end int64) (Layout, error) {
	if l.Channels == 0 {
		return l, errors.New("data before fmt chunk")
	}
	if l.Offset, l.Size = at, end-at; n < maxDataSize {
		l.Size = min(n, end-at)
	}
	return l, nil
}

// readFormat reads a fmt chunk of some size.
func (l *Layout) readFormat(r io.Reader, size int64) error {
	var b [26]byte
	n, err := io.ReadFull(r, b[:min(size, int64(len(b)))])
	if err != nil && size > 0 {
		return err
	}
	var f format
	if err := f.read(b[:n]); err != nil {
		return err
	}
	l.Encoding, l.Channels, l.Rate = f.enc, f.channels, f.rate
	return nil
}

// format holds the fields of a fmt chunk that are used.
type format struct {
	enc      Encoding
	channels int
	rate     int
}

func (f *format) read(b []byte) error {
	if len(b) < 16 {
		return errors.New("short fmt chunk")
	}
	le := binary.LittleEndian
	f.enc, f.channels, f.rate = Encoding(le.Uint16(b)), int(le.Uint16(b[2:])), int(le.Uint32(b[4:]))
	if f.enc == tagExtensible && len(b) >= 26 { // the tag opens the sub-format GUID
		f.enc = Encoding(le.Uint16(b[24:]))
	}
	bits := le.Uint16(b[14:])
	if !f.setBits(bits) {
		return fmt.Errorf("format %d with %d bits is not supported", f.enc, bits)
	}
	if f.channels < 1 || f.channels > 2 || f.rate < 1 || f.rate > 192000 {
		return fmt.Errorf("%d channels at %d Hz are not supported", f.channels, f.rate)
	}
	return nil
}

// setBits completes the encoding by the bits of a sample. It reports false if such samples cannot be read.
func (f *format) setBits(bits uint16) bool {
	switch e := Encoding(bits<<8) | f.enc; {
	case f.enc == PCM16 && bits == 16, (f.enc == ULaw || f.enc == ALaw) && bits == 8:
		return true
	case (f.enc == tagPCM || f.enc == tagFloat) && bits < 64 && (e == PCM8 || e == PCM24 || e == PCM32 || e == Float32):
		f.enc = e
		return true
	}
	return false
}

// decode returns the samples in b, one slice per channel.
func (l Layout) decode(b []byte) Audio {
	size := l.Encoding.SampleBytes()
	n := len(b) / (size * l.Channels)
	w := Audio{Rate: l.Rate, PCM: make([][]int16, l.Channels)}
	for c := range w.PCM {
		w.PCM[c] = make([]int16, n)
		for i := range w.PCM[c] {
			w.PCM[c][i] = Sample(b[(i*l.Channels+c)*size:], l.Encoding)
		}
	}
	return w
}
