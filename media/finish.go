package media

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
)

// Result describes a finished recording.
type Result struct {
	Path       string
	Duration   time.Duration
	Size       int64  // of the file, bytes
	SHA256     string // of the file, hex
	SampleRate int
	Channels   int
	Codec      Codec
}

// ErrNoAudio is returned by Salvage for a file that ends before its audio begins.
var ErrNoAudio = errors.New("nothing was recorded")

// Close finishes the file: the rest of the audio, WAV header, fsync, rename,
// fsync of the folder, so that Path appears whole or not at all. Then it waits
// until the tap has had everything, or ctx ends. A recorder that gave up
// returns the Result of what was saved together with its error.
func (r *Recorder) Close(ctx context.Context) (Result, error) {
	r.engine.rec.remove(r)
	r.detachAll()
	gaveUp, again := r.last()
	if again {
		return Result{}, ErrClosed
	}
	res, err := r.seal()
	if r.tap != nil {
		r.tap.finish(ctx)
	}
	r.wg.Wait()
	_ = r.file.Close()
	if err == nil && gaveUp == nil {
		r.engine.recorded.Add(1)
	}
	return res, errors.Join(gaveUp, err)
}

// last writes what is left and ends the recording at this moment.
func (r *Recorder) last() (gaveUp error, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, true
	}
	if r.err == nil {
		scratch := make([]byte, 2*flushChunk)
		r.empty(scratch)
		r.flush(r.position(r.engine.clock()), scratch)
	}
	r.closed = true
	return r.err, false
}

func (r *Recorder) seal() (Result, error) {
	res, err := seal(r.file, r.cfg.Path, r.cfg.Codec, fileOffset(r.flushed))
	if err != nil {
		return res, fmt.Errorf("finish recording %s: %w", r.cfg.Path, err)
	}
	return res, nil
}

// seal makes a finished recording of an open .part of which size bytes are good.
func seal(f *os.File, path string, c Codec, size int64) (Result, error) {
	if err := f.Truncate(size); err != nil {
		return Result{}, err
	}
	h := wavHeader(c.encoding(), 2, recordRate, size-wavHeaderLen)
	if _, err := f.WriteAt(h[:], 0); err != nil {
		return Result{}, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size)); err != nil {
		return Result{}, err
	}
	if err := f.Sync(); err != nil {
		return Result{}, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return Result{}, err
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return Result{}, err
	}
	frames := (size - wavHeaderLen) / 2
	return Result{Path: path, Duration: time.Duration(frames) * time.Second / recordRate, Size: size,
		SHA256: hex.EncodeToString(sum.Sum(nil)), SampleRate: recordRate, Channels: 2, Codec: c}, nil
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Salvage turns a .part left by a crash into a finished recording with what is
// there, under the name it would have had. It may be repeated after a crash of
// its own. A recorder must not be running on the file.
func Salvage(partPath string) (Result, error) {
	res, err := salvage(partPath)
	if err != nil {
		return Result{}, fmt.Errorf("salvage %s: %w", partPath, err)
	}
	return res, nil
}

func salvage(partPath string) (Result, error) {
	path, ok := strings.CutSuffix(partPath, partSuffix)
	if !ok {
		return Result{}, fmt.Errorf("want a name that ends in %s", partSuffix)
	}
	f, err := os.OpenFile(partPath, os.O_RDWR, 0)
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	var h [wavHeaderLen]byte
	if _, err := f.ReadAt(h[:], 0); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrNoAudio, err)
	}
	codec, err := headerCodec(h)
	if err != nil {
		return Result{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return Result{}, err
	}
	// The last frame may be half written.
	return seal(f, path, codec, info.Size()-(info.Size()-wavHeaderLen)%2)
}

// headerCodec reads our own header back. After a power cut it can be zeros.
func headerCodec(h [wavHeaderLen]byte) (Codec, error) {
	enc := Encoding(binary.LittleEndian.Uint16(h[20:]))
	if string(h[:4]) != "RIFF" || enc != ULaw && enc != ALaw {
		return PCMU, fmt.Errorf("%w: not the header of a recording", ErrNoAudio)
	}
	if enc == ALaw {
		return PCMA, nil
	}
	return PCMU, nil
}
