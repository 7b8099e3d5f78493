package transcript

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrTooShort is returned for a recording of less than half a second.
var ErrTooShort = errors.New("recording is too short")

// TranscribeFile recognises a whole recording: a WAV file, or the frames of one that was never closed. raw is the format of frames without
// a header. A WAV header replaces all of it except Outbound. The audio is read in small parts, however long it is. v may be nil.
func (p *RecognizerPool) TranscribeFile(ctx context.Context, r io.ReaderAt, size int64, raw Format, language string,
	v Vocabulary) ([]Segment, error) {
	data, f, err := audioOf(io.NewSectionReader(r, 0, size), raw)
	if err != nil {
		return nil, err
	}
	f.Outbound = raw.Outbound
	if data.Size() < int64(f.Rate*f.frameBytes()/2) {
		return nil, ErrTooShort
	}
	l, err := NewLiveTranscription(p, f, func() string { return language }, data)
	if err != nil {
		return nil, err
	}
	l.vocabulary = v
	if err := l.readAll(ctx, data); err != nil {
		return nil, err
	}
	return l.Wait(ctx)
}

// readAll writes a recording in parts of one second.
func (l *LiveTranscription) readAll(ctx context.Context, data *io.SectionReader) error {
	defer l.End()
	part := make([]byte, l.format.Rate*l.format.frameBytes())
	for at := int64(0); ; at += int64(len(part)) {
		n, err := data.ReadAt(part, at)
		l.Write(part[:n-n%l.format.frameBytes()])
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read recording: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// audioOf returns the sample data of a recording and its format. The header of a recording interrupted by a crash has
// no size: all that follows is data.
func audioOf(r *io.SectionReader, raw Format) (*io.SectionReader, Format, error) {
	var head [12]byte
	if _, err := r.ReadAt(head[:], 0); err != nil || string(head[:4]) != "RIFF" || string(head[8:]) != "WAVE" {
		return r, raw, raw.valid()
	}
	f, at, size, err := findData(r)
	if err != nil {
		return nil, f, err
	}
	if size == 0 || size > r.Size()-at {
		size = r.Size() - at
	}
	return io.NewSectionReader(r, at, size), f, f.valid()
}

// findData searches the chunks of a WAV file for its samples.
func findData(r *io.SectionReader) (f Format, at, size int64, err error) {
	var chunk [8]byte
	for at = 12; ; at += size + size%2 {
		if _, err := r.ReadAt(chunk[:], at); err != nil {
			return f, 0, 0, fmt.Errorf("find audio in recording: %w", err)
		}
		at += 8
		size = int64(binary.LittleEndian.Uint32(chunk[4:]))
		switch string(chunk[:4]) {
		case "fmt ":
			if f, err = wavFormat(r, at); err != nil {
				return f, 0, 0, err
			}
		case "data":
			return f, at, size, nil
		}
	}
}

// wavFormat parses a WAV format chunk: linear, A-law or µ-law.
func wavFormat(r io.ReaderAt, at int64) (Format, error) {
	var b [16]byte
	if _, err := r.ReadAt(b[:], at); err != nil {
		return Format{}, fmt.Errorf("read WAV format: %w", err)
	}
	f := Format{Channels: int(binary.LittleEndian.Uint16(b[2:])), Rate: int(binary.LittleEndian.Uint32(b[4:]))}
	tag, bits := binary.LittleEndian.Uint16(b[:]), binary.LittleEndian.Uint16(b[14:])
	switch {
	case tag == 7 && bits == 8:
		f.Encoding = PCMU
	case tag == 6 && bits == 8:
		f.Encoding = PCMA
	case (tag == 1 || tag == 0xFFFE) && bits == 16:
		f.Encoding = PCM16
	default:
		return f, fmt.Errorf("WAV encoding %d with %d bits is not supported", tag, bits)
	}
	return f, nil
}
