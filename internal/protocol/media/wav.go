package media

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// Encoding is the sample encoding of a WAV file: the format tag of its fmt chunk.
type Encoding uint16

// The encodings that ReadWAV and WriteWAV support (RFC 2361).
const (
	PCM16 Encoding = 1
	ALaw  Encoding = 6
	ULaw  Encoding = 7
)

// WAV holds the audio of a RIFF file.
type WAV struct {
	Rate int       // samples per second
	PCM  [][]int16 // one slice per channel, of the same length
}

// wavHeaderLen is the size of the header that wavHeader returns.
const wavHeaderLen = 58

func (e Encoding) sampleBytes() int {
	if e == PCM16 {
		return 2
	}
	return 1
}

// wavHeader returns RIFF, fmt (18 bytes), fact and data headers for dataLen bytes of audio.
func wavHeader(e Encoding, channels, rate int, dataLen int64) [wavHeaderLen]byte {
	var h [wavHeaderLen]byte
	le := binary.LittleEndian
	frame := channels * e.sampleBytes()
	n := uint32(min(dataLen, 1<<32-1-wavHeaderLen))
	copy(h[0:], "RIFF")
	le.PutUint32(h[4:], wavHeaderLen-8+n+n&1)
	copy(h[8:], "WAVEfmt ")
	le.PutUint32(h[16:], 18)
	le.PutUint16(h[20:], uint16(e))
	le.PutUint16(h[22:], uint16(channels))
	le.PutUint32(h[24:], uint32(rate))
	le.PutUint32(h[28:], uint32(rate*frame))
	le.PutUint16(h[32:], uint16(frame))
	le.PutUint16(h[34:], uint16(8*e.sampleBytes()))
	copy(h[38:], "fact")
	le.PutUint32(h[42:], 4)
	le.PutUint32(h[46:], n/uint32(frame)) // samples per channel
	copy(h[50:], "data")
	le.PutUint32(h[54:], n)
	return h
}

// WriteWAV writes w to path and replaces an existing file. Channels must have the same length.
func WriteWAV(path string, w WAV, e Encoding) error {
	body, err := interleave(w, e)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	h := wavHeader(e, len(w.PCM), w.Rate, int64(len(body)))
	if len(body)%2 == 1 {
		body = append(body, 0) // RIFF chunks are padded to even length
	}
	return os.WriteFile(path, append(h[:], body...), 0o600)
}

func interleave(w WAV, e Encoding) ([]byte, error) {
	if len(w.PCM) == 0 || len(w.PCM) > 2 || w.Rate <= 0 {
		return nil, fmt.Errorf("want 1 or 2 channels at a positive rate, got %d at %d", len(w.PCM), w.Rate)
	}
	n, ch, size := len(w.PCM[0]), len(w.PCM), e.sampleBytes()
	out := make([]byte, n*ch*size)
	for c, pcm := range w.PCM {
		if len(pcm) != n {
			return nil, errors.New("channels differ in length")
		}
		for i, v := range pcm {
			putSample(out[(i*ch+c)*size:], v, e)
		}
	}
	return out, nil
}

func putSample(b []byte, v int16, e Encoding) {
	switch e {
	case ULaw:
		b[0] = ulawOf[uint16(v)]
	case ALaw:
		b[0] = alawOf[uint16(v)]
	default:
		binary.LittleEndian.PutUint16(b, uint16(v))
	}
}

func sample(b []byte, e Encoding) int16 {
	switch e {
	case ULaw:
		return linearOfULaw[b[0]]
	case ALaw:
		return linearOfALaw[b[0]]
	default:
		return int16(binary.LittleEndian.Uint16(b))
	}
}

// ReadWAV reads a PCM16, µ-law or A-law file of one or two channels. A data chunk truncated by a crash is read as
// far as it goes.
func ReadWAV(path string) (WAV, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return WAV{}, fmt.Errorf("read WAV: %w", err)
	}
	w, err := decodeWAV(b)
	if err != nil {
		return WAV{}, fmt.Errorf("read WAV %s: %w", path, err)
	}
	return w, nil
}

func decodeWAV(b []byte) (WAV, error) {
	if len(b) < 12 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WAVE" {
		return WAV{}, errors.New("not a RIFF WAVE file")
	}
	var f wavFormat
	for b = b[12:]; len(b) >= 8; {
		id, n := string(b[:4]), int64(binary.LittleEndian.Uint32(b[4:]))
		b = b[8:]
		body := b[:min(n, int64(len(b)))]
		switch id {
		case "fmt ":
			if err := f.read(body); err != nil {
				return WAV{}, err
			}
		case "data":
			return f.decode(body)
		}
		b = b[min(n+n&1, int64(len(b))):]
	}
	return WAV{}, errors.New("no data chunk")
}

// wavFormat holds the fields of a fmt chunk that are used.
type wavFormat struct {
	enc      Encoding
	channels int
	rate     int
}

func (f *wavFormat) read(b []byte) error {
	if len(b) < 16 {
		return errors.New("short fmt chunk")
	}
	le := binary.LittleEndian
	f.enc, f.channels, f.rate = Encoding(le.Uint16(b)), int(le.Uint16(b[2:])), int(le.Uint32(b[4:]))
	if f.enc == 0xFFFE && len(b) >= 26 { // WAVE_FORMAT_EXTENSIBLE: the tag opens the sub-format GUID
		f.enc = Encoding(le.Uint16(b[24:]))
	}
	bits := int(le.Uint16(b[14:]))
	if f.enc != PCM16 && f.enc != ULaw && f.enc != ALaw || bits != 8*f.enc.sampleBytes() {
		return fmt.Errorf("format %d with %d bits is not supported", f.enc, bits)
	}
	if f.channels < 1 || f.channels > 2 || f.rate < 1 || f.rate > 192000 {
		return fmt.Errorf("%d channels at %d Hz are not supported", f.channels, f.rate)
	}
	return nil
}

func (f *wavFormat) decode(b []byte) (WAV, error) {
	if f.channels == 0 {
		return WAV{}, errors.New("data before fmt chunk")
	}
	size := f.enc.sampleBytes()
	n := len(b) / (size * f.channels)
	w := WAV{Rate: f.rate, PCM: make([][]int16, f.channels)}
	for c := range w.PCM {
		w.PCM[c] = make([]int16, n)
		for i := range w.PCM[c] {
			w.PCM[c][i] = sample(b[(i*f.channels+c)*size:], f.enc)
		}
	}
	return w, nil
}
