package record

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/wav"
)

// Result describes a finished recording.
type Result struct {
	Path       string
	Duration   time.Duration
	Size       int64  // of the file, bytes
	SHA256     string // of the file, hex
	SampleRate int
	Channels   int
	Codec      codec.Codec // G.711 law; meaningless if Wideband
	Wideband   bool        // 16-bit linear at 16 kHz

	Missing time.Duration // audio that could not be written: after the error, and packets lost because the disk was blocked
}

// ErrNoAudio is returned by Recover for a file that ends before its audio begins.
var ErrNoAudio = errors.New("nothing was recorded")

// Close finishes the file: it writes the rest of the audio and the WAV header, calls fsync, renames the file and
// calls fsync on the directory. Path therefore appears complete or not at all. Then it waits until the tap has
// received everything, or ctx ends. If the recorder had stopped with an error, Close returns the Result of the saved
// part together with that error. A second Close returns ErrClosed.
func (r *Recorder) Close(ctx context.Context) (Result, error) {
	r.owner.remove(r)
	r.detachAll()
	gaveUp, again := r.stopWriting()
	if again {
		return Result{}, ErrClosed
	}
	res, err := r.finalize()
	res.Missing = r.missing()
	if r.tap != nil {
		r.tap.finish(ctx)
	}
	r.wg.Wait()
	_ = r.file.Close()
	switch {
	case gaveUp != nil: // counted when it happened
	case err != nil:
		r.owner.failed.Add(1)
	default:
		r.owner.recorded.Add(1)
	}
	return res, errors.Join(gaveUp, err)
}

// Stop ends the recording now, however late Close is called. Later audio of both sides is not recorded.
func (r *Recorder) Stop() {
	r.mu.Lock()
	if r.stopPosition == 0 {
		r.stopPosition = max(r.position(r.owner.clock()), 1)
	}
	r.mu.Unlock()
	r.detachAll()
}

// endPosition returns the end of the recording: now, or the position at which it was stopped. The caller holds r.mu.
func (r *Recorder) endPosition() int64 {
	now := r.position(r.owner.clock())
	if r.stopPosition > 0 {
		return min(now, r.stopPosition)
	}
	return now
}

// stopWriting writes the remaining audio and ends the recording at this moment. again is true if that was done
// before.
func (r *Recorder) stopWriting() (gaveUp error, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, true
	}
	if r.err == nil {
		room := scratchBuffers.get()
		r.placeAll(room)
		r.flush(r.endPosition(), room)
		scratchBuffers.put(room)
	}
	if r.err != nil {
		r.unwritten = max(0, r.endPosition()-r.flushed)
	}
	r.closed = true
	r.releaseBuffers()
	return r.err, false
}

// packetTime is the usual duration of a packet.
const packetTime = 20 * time.Millisecond

// missing returns the duration of the audio that a closed recorder could not write.
func (r *Recorder) missing() time.Duration {
	return time.Duration(r.Stats().Dropped)*packetTime + time.Duration(r.unwritten)*time.Second/time.Duration(r.layout.rate)
}

// releaseBuffers returns the buffers of a closed recorder to their pools. It detaches all streams first, including
// one that SetLeft attached while Close began, because no stream may write to a released buffer. The caller holds
// r.mu.
func (r *Recorder) releaseBuffers() {
	r.detach()
	for i := range r.channels {
		r.channels[i].releaseBuffers()
	}
}

func (r *Recorder) finalize() (Result, error) {
	res, err := finalizePart(r.file, r.cfg.Path, r.layout, r.layout.fileOffset(r.flushed))
	if err != nil {
		return res, fmt.Errorf("finish recording %s: %w", r.cfg.Path, err)
	}
	return res, nil
}

// finalizePart turns an open .part, of which size bytes are complete, into a finished recording.
func finalizePart(f *os.File, path string, l layout, size int64) (Result, error) {
	if !l.mono {
		return publishFile(f, path, l, size)
	}
	folded, size, err := l.downmix(f, path, size)
	if err != nil {
		return Result{}, err
	}
	defer folded.Close()
	res, err := publishFile(folded, path, l, size)
	if err == nil {
		err = os.Remove(f.Name())
	}
	return res, err
}

// publishFile truncates a file to size, writes its header and renames it to path.
func publishFile(f *os.File, path string, l layout, size int64) (Result, error) {
	if err := f.Truncate(size); err != nil {
		return Result{}, err
	}
	h := l.header(size - wav.HeaderLen)
	if _, err := f.WriteAt(h[:], 0); err != nil {
		return Result{}, err
	}
	sum, room := sha256.New(), scratchBuffers.get()
	defer scratchBuffers.put(room)
	if _, err := io.CopyBuffer(sum, io.NewSectionReader(f, 0, size), room); err != nil {
		return Result{}, err
	}
	if err := f.Sync(); err != nil {
		return Result{}, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return Result{}, err
	}
	if err := directories.flush(filepath.Dir(path)); err != nil {
		return Result{}, err
	}
	frames := (size - wav.HeaderLen) / (int64(l.channels()) * l.width())
	return Result{Path: path, Duration: time.Duration(frames) * time.Second / time.Duration(l.rate), Size: size,
		SHA256: hex.EncodeToString(sum.Sum(nil)), SampleRate: int(l.rate), Channels: l.channels(), Codec: l.law(),
		Wideband: l.encoding == wav.PCM16}, nil
}

// Recover turns a .part left by a crash into a finished recording of the audio that is there, under its
// final name. It may be repeated if it is interrupted by a crash. No recorder may be running on the file.
func Recover(partPath string) (Result, error) {
	res, err := recoverRecording(partPath)
	if err != nil {
		return Result{}, fmt.Errorf("recover recording %s: %w", partPath, err)
	}
	return res, nil
}

func recoverRecording(partPath string) (Result, error) {
	path, ok := strings.CutSuffix(partPath, PartSuffix)
	if !ok {
		return Result{}, fmt.Errorf("want a name that ends in %s", PartSuffix)
	}
	f, err := os.OpenFile(partPath, os.O_RDWR, 0)
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	l, size, err := inspectPart(f)
	if err != nil {
		return Result{}, err
	}
	return finalizePart(f, path, l, size)
}

// inspectPart returns the layout of a .part and the number of bytes in complete frames. The last frame may be half
// written.
func inspectPart(f *os.File) (layout, int64, error) {
	var h [wav.HeaderLen]byte
	if _, err := f.ReadAt(h[:], 0); err != nil {
		return layout{}, 0, fmt.Errorf("%w: %w", ErrNoAudio, err)
	}
	l, err := layoutOfHeader(h)
	if err != nil {
		return layout{}, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return layout{}, 0, err
	}
	return l, info.Size() - (info.Size()-wav.HeaderLen)%(2*l.width()), nil
}

// layoutOfHeader parses the header of our own recordings. After a power failure the header can be all zeros.
func layoutOfHeader(h [wav.HeaderLen]byte) (layout, error) {
	l := layout{wav.Encoding(binary.LittleEndian.Uint16(h[20:])), int64(binary.LittleEndian.Uint32(h[24:])), false}
	known := l == layout{wav.ULaw, 8000, false} || l == layout{wav.ALaw, 8000, false} || l == layout{wav.PCM16, 16000, false}
	l.mono = binary.LittleEndian.Uint16(h[22:]) == 1
	if string(h[:4]) != "RIFF" || !known {
		return layout{}, fmt.Errorf("%w: not the header of a recording", ErrNoAudio)
	}
	return l, nil
}

// maxResumeGap limits the silence that replaces the time without a recorder.
const maxResumeGap = time.Hour

// resumePart continues a .part that a restart left. The time from its last write until now becomes silence.
func (r *Recorder) resumePart() error {
	f, err := os.OpenFile(r.cfg.Path+PartSuffix, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	l, size, err := inspectPart(f)
	if err != nil {
		_ = f.Close()
		return err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return err
	}
	gap := max(0, min(time.Since(info.ModTime()), maxResumeGap))
	r.file, r.layout, r.flushed = f, l, (size-wav.HeaderLen)/(2*l.width())
	r.startPosition = r.flushed + l.samples(int64(gap))
	r.startTime -= r.startPosition * int64(time.Second) / l.rate
	return nil
}
