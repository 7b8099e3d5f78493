package media

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hajimehoshi/go-mp3"
)

// clipRate is the sample rate of clips in Hz.
const clipRate = 16000

// Limits of LoadClip.
const (
	maxClipBytes    = 64 << 20         // of a file
	maxClipDuration = 30 * time.Minute // of audio
)

// A Clip holds decoded mono audio that can be played to many legs at once. It is immutable.
type Clip struct {
	pcm []int16
}

// NewClip returns a clip of mono samples. The rate must be 8000 to 48000 Hz; at any other rate the clip is empty.
func NewClip(pcm []int16, rate int) *Clip {
	if rate < 8000 || rate > 48000 {
		return &Clip{}
	}
	tail := make([]int16, resampleTaps*2) // flushes the last samples out of the filter
	r := newResampler(rate, clipRate)
	out := r.process(make([]int16, 0, len(pcm)*clipRate/rate+len(tail)*4), pcm)
	if r != nil {
		out = r.process(out, tail[:min(len(tail), r.taps/2)])
	}
	return &Clip{pcm: out}
}

// Duration returns the length of the clip.
func (c *Clip) Duration() time.Duration {
	return time.Duration(len(c.pcm)) * time.Second / clipRate
}

// StartingAt returns the clip without the part before at.
func (c *Clip) StartingAt(at time.Duration) *Clip {
	n := int(at * clipRate / time.Second)
	return &Clip{pcm: c.pcm[min(max(n, 0), len(c.pcm)):]}
}

// LoadClip reads an audio file: WAV (16-bit linear or G.711, one or two channels, 8 to 48 kHz), MP3, or Ogg Opus. Two
// channels are mixed to one. It returns an error for a file over 64 MB or 30 minutes.
func LoadClip(path string) (*Clip, error) {
	b, err := readClip(path)
	if err != nil {
		return nil, fmt.Errorf("load clip: %w", err)
	}
	pcm, rate, err := decodeClip(b)
	if err == nil {
		err = checkClip(pcm, rate)
	}
	if err != nil {
		return nil, fmt.Errorf("load clip %s: %w", path, err)
	}
	return NewClip(pcm, rate), nil
}

func readClip(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxClipBytes+1))
	if len(b) > maxClipBytes {
		return nil, fmt.Errorf("%s is larger than %d MB", path, maxClipBytes>>20)
	}
	return b, err
}

func checkClip(pcm []int16, rate int) error {
	switch {
	case rate < 8000 || rate > 48000:
		return fmt.Errorf("%d Hz is not between 8000 and 48000", rate)
	case len(pcm) == 0:
		return errors.New("no sound in it")
	case time.Duration(len(pcm))*time.Second/time.Duration(rate) > maxClipDuration:
		return fmt.Errorf("longer than %v", maxClipDuration)
	}
	return nil
}

// decodeClip detects the format by the first bytes of the file. Third-party decoders may panic on malformed input;
// the panic is returned as an error.
func decodeClip(b []byte) (pcm []int16, rate int, err error) {
	defer func() {
		if p := recover(); p != nil {
			pcm, rate, err = nil, 0, fmt.Errorf("cannot be decoded: %v", p)
		}
	}()
	switch {
	case bytes.HasPrefix(b, []byte("RIFF")):
		w, err := decodeWAV(b)
		if err != nil {
			return nil, 0, err
		}
		return mixToMono(w.PCM), w.Rate, nil
	case bytes.HasPrefix(b, []byte("OggS")):
		return decodeOgg(b)
	case bytes.HasPrefix(b, []byte("ID3")) || len(b) > 1 && b[0] == 0xFF && b[1]&0xE0 == 0xE0:
		return decodeMP3(b)
	}
	return nil, 0, errors.New("not WAV, MP3 or Ogg")
}

func mixToMono(channels [][]int16) []int16 {
	if len(channels) == 1 {
		return channels[0]
	}
	out := make([]int16, len(channels[0]))
	for i := range out {
		out[i] = int16((int(channels[0][i]) + int(channels[1][i])) / 2)
	}
	return out
}

// stripID3 returns the data behind all ID3v2 tags, because the MP3 decoder trusts the sizes that the tags claim.
func stripID3(b []byte) ([]byte, error) {
	for bytes.HasPrefix(b, []byte("ID3")) {
		if len(b) < 10 {
			return nil, io.ErrUnexpectedEOF
		}
		n := 10
		for i, v := range b[6:10] {
			n += int(v&127) << (21 - 7*i)
		}
		if n > len(b) {
			return nil, io.ErrUnexpectedEOF
		}
		b = b[n:]
	}
	return b, nil
}

// decodeMP3 decodes MPEG audio layer 3. The decoder always returns two channels, which are mixed to one.
func decodeMP3(b []byte) ([]int16, int, error) {
	b, err := stripID3(b)
	if err != nil {
		return nil, 0, err
	}
	d, err := mp3.NewDecoder(struct{ io.Reader }{bytes.NewReader(b)}) // hides Seek: the decoder reads a seekable source twice
	if err != nil {
		return nil, 0, err
	}
	most := int64(maxClipDuration/time.Second) * int64(d.SampleRate()) * 4
	raw, err := io.ReadAll(io.LimitReader(d, most+4))
	if err != nil && len(raw) == 0 {
		return nil, 0, err
	}
	pcm := make([]int16, len(raw)/4)
	for i := range pcm {
		left, right := sample(raw[4*i:], PCM16), sample(raw[4*i+2:], PCM16)
		pcm[i] = int16((int(left) + int(right)) / 2)
	}
	return pcm, d.SampleRate(), nil
}
