package clip

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hajimehoshi/go-mp3"

	"soniq/internal/protocol/media/wav"
)

// Limits of files.
const (
	MaxDuration  = 30 * time.Minute // of audio
	maxClipBytes = 64 << 20         // of a file
)

// ErrTooLong is the cause of the error for a file that plays longer than MaxDuration.
var ErrTooLong = fmt.Errorf("longer than %v", MaxDuration)

// piece is about the number of samples that a decoder returns at once. Decoders take turns after each piece.
const piece = 16_000

// A decoder yields the mono samples of a file.
type decoder interface {
	rate() int
	// next returns some samples, valid until the next call. The error is io.EOF after the last ones.
	next() ([]int16, error)
}

// decode calls use with the samples of a file, piece by piece. It uses little memory, whatever the file claims. Decoders that panic on
// malformed input
// return an error.
func decode(path string, use func(pcm []int16, rate int) error) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxClipBytes {
		return fmt.Errorf("larger than %d MB", maxClipBytes>>20)
	}
	return decodeFrom(f, filepath.Dir(path), MaxDuration, use)
}

// decodeFrom decodes at most so much audio for an owner.
func decodeFrom(f io.ReadSeeker, owner string, longest time.Duration, use func(pcm []int16, rate int) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be decoded: %v", p)
		}
	}()
	d, err := newDecoder(f)
	if err != nil {
		return err
	}
	if d.rate() < 8000 || d.rate() > 48000 {
		return fmt.Errorf("%d Hz is not between 8000 and 48000", d.rate())
	}
	most, n := int(longest/time.Second)*d.rate(), 0
	for {
		got, err := nextPiece(d, owner, use)
		n += got
		switch {
		case n > most:
			return ErrTooLong
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case errors.Is(err, io.EOF):
			return errors.New("no sound in it")
		case err != nil:
			return err
		}
	}
}

// nextPiece decodes and uses a piece when it is the owner's turn.
func nextPiece(d decoder, owner string, use func(pcm []int16, rate int) error) (int, error) {
	defer takeTurn(owner)()
	pcm, err := d.next()
	if len(pcm) > 0 {
		if wrong := use(pcm, d.rate()); wrong != nil {
			return 0, wrong
		}
	}
	return len(pcm), err
}

// newDecoder finds the format by the first bytes.
func newDecoder(f io.ReadSeeker) (decoder, error) {
	var head [4]byte
	n, err := io.ReadFull(f, head[:])
	if err != nil && n == 0 {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	switch b := head[:n]; {
	case bytes.HasPrefix(b, []byte("RIFF")):
		return newWAVDecoder(f)
	case bytes.HasPrefix(b, []byte("OggS")):
		return newOggDecoder(bufio.NewReaderSize(f, 32<<10))
	case bytes.HasPrefix(b, []byte("ID3")) || n > 1 && b[0] == 0xFF && b[1]&0xE0 == 0xE0:
		return newMP3Decoder(f)
	}
	return nil, errors.New("not WAV, MP3 or Ogg")
}

// wavDecoder reads one or two channels.
type wavDecoder struct {
	layout wav.Layout
	from   io.Reader
	raw    []byte
	pcm    []int16
}

func newWAVDecoder(f io.ReadSeeker) (decoder, error) {
	l, err := wav.Scan(f)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(l.Offset, io.SeekStart); err != nil {
		return nil, err
	}
	frame := l.Channels * l.Encoding.SampleBytes()
	return &wavDecoder{layout: l, from: io.LimitReader(f, l.Size), raw: make([]byte, piece*frame), pcm: make([]int16, piece)}, nil
}

func (d *wavDecoder) rate() int { return d.layout.Rate }

func (d *wavDecoder) next() ([]int16, error) {
	n, err := io.ReadFull(d.from, d.raw)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	size := d.layout.Encoding.SampleBytes()
	frame := size * d.layout.Channels
	pcm := d.pcm[:n/frame]
	for i := range pcm {
		v := int(wav.Sample(d.raw[i*frame:], d.layout.Encoding))
		if d.layout.Channels == 2 {
			v = (v + int(wav.Sample(d.raw[i*frame+size:], d.layout.Encoding))) / 2
		}
		pcm[i] = int16(v)
	}
	return pcm, err
}

// mp3Decoder reads MPEG audio layer 3. The library always returns two channels, which are mixed to one.
type mp3Decoder struct {
	library *mp3.Decoder
	raw     []byte
	pcm     []int16
}

func newMP3Decoder(f io.ReadSeeker) (decoder, error) {
	if err := skipID3(f); err != nil {
		return nil, err
	}
	d, err := mp3.NewDecoder(bufio.NewReaderSize(f, 32<<10)) // a reader without Seek: the library reads a seekable source twice
	if err != nil {
		return nil, err
	}
	return &mp3Decoder{library: d, raw: make([]byte, 4*piece), pcm: make([]int16, piece)}, nil
}

func (d *mp3Decoder) rate() int { return d.library.SampleRate() }

func (d *mp3Decoder) next() ([]int16, error) {
	n, err := io.ReadFull(d.library, d.raw)
	if err != nil && n >= 0 { // what follows a fault is left out
		err = io.EOF
	}
	pcm := d.pcm[:n/4]
	for i := range pcm {
		left, right := wav.Sample(d.raw[4*i:], wav.PCM16), wav.Sample(d.raw[4*i+2:], wav.PCM16)
		pcm[i] = int16((int(left) + int(right)) / 2)
	}
	return pcm, err
}

// skipID3 seeks behind all ID3v2 tags, because the library trusts the sizes that the tags claim.
func skipID3(f io.ReadSeeker) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	for at := int64(0); ; {
		if _, err := f.Seek(at, io.SeekStart); err != nil {
			return err
		}
		var head [10]byte
		n, err := io.ReadFull(f, head[:])
		if !bytes.HasPrefix(head[:n], []byte("ID3")) {
			_, err = f.Seek(at, io.SeekStart)
			return err
		}
		if err != nil {
			return io.ErrUnexpectedEOF
		}
		at += 10
		for i, v := range head[6:] {
			at += int64(v&127) << (21 - 7*i)
		}
		if at > end {
			return io.ErrUnexpectedEOF
		}
	}
}
