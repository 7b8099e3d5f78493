package wav

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// Span is a part of a file, in milliseconds from its start.
type Span struct{ StartMS, EndMS int }

// Store has files that can be replaced. *blob.Dir implements it.
type Store interface {
	Open(ctx context.Context, name string) (io.ReadSeekCloser, int64, error)
	// Put writes a file atomically, and replaces it.
	Put(ctx context.Context, name string, from io.Reader) (size int64, err error)
}

// Silence rewrites a file with parts of all channels replaced by silence, and returns its SHA-256 in hexadecimal and its size.
func Silence(ctx context.Context, files Store, name string, parts []Span) (sum string, size int64, err error) {
	f, whole, err := files.Open(ctx, name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	l, err := Scan(f)
	if err != nil {
		return "", 0, err
	}
	if l.Size == 0 { // the header was written before the samples
		l.Size = whole - l.Offset
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", 0, err
	}
	hash := sha256.New()
	quiet := &silencer{from: f, layout: l, parts: parts}
	if size, err = files.Put(ctx, name, io.TeeReader(quiet, hash)); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(hash.Sum(nil)), size, nil
}

// silencer reads a WAV file with parts replaced by silence.
type silencer struct {
	from   io.Reader
	layout Layout
	parts  []Span
	at     int64 // position in the file
}

// Read implements io.Reader.
func (s *silencer) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	var quiet [2]byte // of a sample; both bytes of 16 bits are alike
	PutSample(quiet[:], 0, s.layout.Encoding)
	frame := int64(s.layout.Channels * s.layout.Encoding.SampleBytes())
	for _, r := range s.parts {
		from := s.layout.Offset + s.frames(r.StartMS)*frame
		to := s.layout.Offset + min(s.frames(r.EndMS)*frame, s.layout.Size)
		for i := max(from-s.at, 0); i < min(to-s.at, int64(n)); i++ {
			p[i] = quiet[0]
		}
	}
	s.at += int64(n)
	return n, err
}

// frames returns the number of samples of each channel in a time.
func (s *silencer) frames(ms int) int64 {
	return int64(max(ms, 0)) * int64(s.layout.Rate) / 1000
}
