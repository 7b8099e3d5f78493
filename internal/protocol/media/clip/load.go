// Package clip has the audio that calls play: files, music on hold, ringing and announcement tones.
package clip

import (
	"fmt"
	"os"
	"time"

	"soniq/internal/protocol/media/dsp"
)

// Rate is the sample rate of clips in Hz.
const Rate = 16000

// A Clip is mono audio that can be played to many legs at once. It is immutable.
type Clip struct {
	pcm    []int16  // all samples; nil if they are in file
	file   *os.File // without a name: the system removes it when nothing refers to it
	offset int      // of the first sample in file
	length int      // samples
}

// New returns a clip of mono samples. The rate must be 8000 to 48000 Hz; at any other rate the clip is empty.
func New(pcm []int16, rate int) *Clip {
	if rate < 8000 || rate > 48000 {
		return &Clip{}
	}
	r := dsp.NewResampler(rate, Rate)
	out := r.Process(make([]int16, 0, len(pcm)*Rate/rate+dsp.ResampleTaps*8), pcm)
	return inMemory(flush(r, out))
}

func inMemory(pcm []int16) *Clip { return &Clip{pcm: pcm, length: len(pcm)} }

// flush appends the last samples that are still in the filter of a resampler.
func flush(r *dsp.Resampler, out []int16) []int16 {
	if r == nil {
		return out
	}
	return r.Process(out, make([]int16, min(dsp.ResampleTaps*2, r.Taps/2)))
}

// Len returns the number of samples.
func (c *Clip) Len() int { return c.length }

// Duration returns the length of the clip.
func (c *Clip) Duration() time.Duration {
	return time.Duration(c.length) * time.Second / Rate
}

// PCM returns all samples. It reads those of a long clip from its file.
func (c *Clip) PCM() []int16 {
	if c.file == nil {
		return c.pcm
	}
	return new(Reader).Samples(c, 0, c.length)
}

// StartingAt returns the clip without the part before at.
func (c *Clip) StartingAt(at time.Duration) *Clip {
	n := min(max(int(at*Rate/time.Second), 0), c.length)
	if c.file == nil {
		return inMemory(c.pcm[n:])
	}
	return &Clip{file: c.file, offset: c.offset + n, length: c.length - n}
}

// Reader reads the samples of a clip, which a long clip has in a file. Its zero value is ready for use, by one goroutine.
type Reader struct {
	window []int16 // samples of the file
	start  int     // place of the first one in the clip
	raw    []byte
}

// readAhead is the number of samples that a Reader reads at once.
const readAhead = Rate / 2

// Samples returns up to n samples from a place on, fewer at the end of the clip. They are valid until the next call.
func (r *Reader) Samples(c *Clip, from, n int) []int16 {
	end := min(from+n, c.length)
	if from >= end {
		return nil
	}
	if c.file == nil {
		return c.pcm[from:end]
	}
	if from < r.start || end > r.start+len(r.window) {
		r.fill(c, from, min(max(n, readAhead), c.length-from))
	}
	return r.window[from-r.start : end-r.start]
}

// fill reads n samples into the window. What cannot be read is silence.
func (r *Reader) fill(c *Clip, from, n int) {
	if cap(r.raw) < 2*n {
		r.raw, r.window = make([]byte, 2*n), make([]int16, n)
	}
	r.raw, r.window, r.start = r.raw[:2*n], r.window[:n], from
	read, _ := c.file.ReadAt(r.raw, 2*int64(c.offset+from))
	clear(r.raw[read:])
	for i := range r.window {
		r.window[i] = int16(uint16(r.raw[2*i]) | uint16(r.raw[2*i+1])<<8)
	}
}

// Load reads an audio file: WAV (16-bit linear or G.711, one or two channels, 8 to 48 kHz), MP3, or Ogg Opus. Two channels are mixed to
// one. It returns
// an error for a file over 64 MB or longer than MaxDuration. Calls that play a file at the same time share its clip.
func Load(path string) (*Clip, error) { return loaded.load(path) }

// Measure decodes a file without keeping its samples, and returns its length. Its errors are those of Load.
func Measure(path string) (time.Duration, error) {
	samples, rate := 0, Rate
	err := decode(path, func(pcm []int16, at int) error {
		samples, rate = samples+len(pcm), at
		return nil
	})
	return time.Duration(samples) * time.Second / time.Duration(rate), err
}

// maxInMemory is the number of samples of a clip that is kept in memory. A longer one is kept in a file.
const maxInMemory = 20 * Rate

// read decodes a file into a clip.
func read(path string) (*Clip, error) {
	b := builder{path: path}
	err := decode(path, b.add)
	if err == nil {
		err = b.keep(flush(b.resampler, b.piece[:0]))
	}
	if err != nil {
		b.discard()
		return nil, fmt.Errorf("load clip %s: %w", path, err)
	}
	return b.clip(), nil
}

// builder collects the samples of a clip, in a file if they are many.
type builder struct {
	path      string // of the audio file; the file of a long clip is made beside it, on the same disk
	resampler *dsp.Resampler
	begun     bool
	pcm       []int16
	piece     []int16 // reused
	raw       []byte  // reused
	file      *os.File
	length    int
}

// add resamples samples and keeps them.
func (b *builder) add(pcm []int16, rate int) error {
	if !b.begun {
		b.begun, b.resampler = true, dsp.NewResampler(rate, Rate)
	}
	b.piece = b.resampler.Process(b.piece[:0], pcm)
	return b.keep(b.piece)
}

func (b *builder) keep(pcm []int16) error {
	b.length += len(pcm)
	if b.file == nil && b.length <= maxInMemory {
		b.pcm = append(b.pcm, pcm...)
		return nil
	}
	if b.file == nil {
		file, err := nameless(b.path)
		if err != nil {
			return err
		}
		b.file = file
		if err := b.write(b.pcm); err != nil {
			return err
		}
		b.pcm = nil
	}
	return b.write(pcm)
}

func (b *builder) write(pcm []int16) error {
	b.raw = b.raw[:0]
	for _, v := range pcm {
		b.raw = append(b.raw, byte(v), byte(uint16(v)>>8))
	}
	_, err := b.file.Write(b.raw)
	return err
}

func (b *builder) discard() {
	if b.file != nil {
		_ = b.file.Close()
	}
}

func (b *builder) clip() *Clip {
	if b.file != nil {
		return &Clip{file: b.file, length: b.length}
	}
	return inMemory(b.pcm)
}
