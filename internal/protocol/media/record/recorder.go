// Package record writes the audio of calls to WAV files while the calls run, and completes files that a crash left.
package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/rtp"
)

// ErrClosed is returned by all methods of a closed Recorder or Recorders that return an error.
var ErrClosed = errors.New("recording closed")

// PartSuffix marks a recording that is running, or was cut off by a crash.
const PartSuffix = ".part"

// Config configures a recording.
type Config struct {
	Path        string      // final name; Path.part while running; its directory is created if missing
	Left, Right Source      // caller and callee; nil is silence until SetLeft, SetRight
	LeftSent    bool        // the left channel records the audio we send to the stream, instead of the audio it sends
	RightSent   bool        // the same of the right channel
	Codec       codec.Codec // G.711 law of the file, µ-law for other codecs; legs with another codec are converted
	Wideband    bool        // 16-bit linear at 16 kHz instead of G.711
	Mono        bool        // the finished file has one channel with both sides; the .part and the Tap have two
	Append      bool        // continue a Path.part that a restart left, if there is one, with silence for the time between
	Tap         func(Chunk) // receives live audio off the packet path, from the start of this recorder; may be nil
	OnError     func(error) // called once, on its own goroutine, if the recorder stops with an error (disk full); may be nil
}

// A Source is a leg whose audio can be recorded: the packets that it receives, or with sent those that are sent to it.
type Source interface {
	// ClaimRecording makes ring the only one that records the audio. It returns false if another recorder has it.
	ClaimRecording(ring *rtp.Ring, sent bool) bool
	// ReleaseRecording ends the claim.
	ReleaseRecording(sent bool)
	// FeedRecording lets the packets into ring from now on; nil keeps them out.
	FeedRecording(ring *rtp.Ring, sent bool)
}

// A Recorder writes the two channels of one call into Path.part: a WAV header with a length of zero, followed by
// interleaved raw samples, left and right.
//
// Packets reach it through one ring per channel. The packet loop fills the rings; a few goroutines shared by all
// recorders empty them. Audio is in the file about 0.3 s after it arrived, and on the disk at most 1 s later. Later
// packets are patched into their place.
type Recorder struct {
	owner         *Recorders
	cfg           Config
	layout        layout
	file          *os.File
	device        uint64 // file system, used to sync many files at once
	startTime     int64  // time of position 0 on the engine's clock
	startPosition int64  // position at which this recorder started
	dirty         atomic.Bool
	tap           *tap
	wg            sync.WaitGroup // runs of OnError

	mu           sync.Mutex // guards the fields below
	stopPosition int64      // position at which it was stopped; 0: not stopped
	channels     [2]recordingChannel
	streams      [2]Source
	sent         [2]bool // the channel has the audio that we send to the stream
	paused       bool
	flushed      int64 // samples per channel in the file
	unwritten    int64 // samples per channel that are not in the file because of err; set by Close
	late         uint64
	closed       bool
	err          error
}

// Record starts a recording. A stream can be in one recorder at a time.
func (w *Recorders) Record(cfg Config) (*Recorder, error) {
	r, err := w.newRecorder(cfg)
	if err != nil {
		w.failed.Add(1)
		return nil, fmt.Errorf("record to %s: %w", cfg.Path, err)
	}
	if err := r.attachAll(); err != nil {
		r.abandon()
		return nil, fmt.Errorf("record to %s: %w", cfg.Path, err)
	}
	if cfg.Tap != nil {
		r.tap = startTap(r, cfg.Tap)
	}
	if !w.add(r) {
		r.detachAll()
		if r.tap != nil {
			r.tap.cancel()
		}
		r.abandon()
		return nil, ErrClosed
	}
	return r, nil
}

func (w *Recorders) newRecorder(cfg Config) (*Recorder, error) {
	if err := os.MkdirAll(filepath.Dir(cfg.Path), 0o700); err != nil {
		return nil, err
	}
	r := &Recorder{owner: w, cfg: cfg, layout: layoutOf(cfg)}
	if err := r.openFile(); err != nil {
		return nil, err
	}
	r.device = deviceOf(r.file)
	r.channels = [2]recordingChannel{newRecordingChannel(r.layout), newRecordingChannel(r.layout)}
	return r, nil
}

// openFile creates the .part, or continues an existing one if cfg.Append is set.
func (r *Recorder) openFile() (err error) {
	r.startTime = r.owner.clock()
	if r.cfg.Append {
		if err = r.resumePart(); err == nil || !errors.Is(err, os.ErrNotExist) && !errors.Is(err, ErrNoAudio) {
			return err
		}
	}
	// A .part of that name is left from a crash and must not be overwritten.
	flags := os.O_CREATE | os.O_EXCL | os.O_RDWR
	if errors.Is(err, ErrNoAudio) { // the .part to continue has no audio
		flags = os.O_TRUNC | os.O_RDWR
	}
	if r.file, err = os.OpenFile(r.cfg.Path+PartSuffix, flags, 0o600); err != nil {
		return err
	}
	h := r.layout.header(0)
	if _, err := r.file.WriteAt(h[:], 0); err != nil {
		r.abandon()
		return err
	}
	return nil
}

// abandon removes the file of a recording that failed to start. A continued file stays.
func (r *Recorder) abandon() {
	_ = r.file.Close()
	if r.startPosition == 0 {
		_ = os.Remove(r.file.Name())
	}
}

// Pause writes silence instead of audio from now on, until Resume.
func (r *Recorder) Pause() { r.setPaused(true) }

// Resume records audio again.
func (r *Recorder) Resume() { r.setPaused(false) }

func (r *Recorder) setPaused(p bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.err != nil {
		return
	}
	r.paused = p
	for i, s := range r.streams {
		r.connect(i, s, !p)
	}
}

// SetLeft records s as the caller's channel from now on (transfer). nil is silence. It returns an error if s is in
// another recorder.
func (r *Recorder) SetLeft(s Source) error { return r.setChannel(0, s, false) }

// SetRight records s as the callee's channel from now on.
func (r *Recorder) SetRight(s Source) error { return r.setChannel(1, s, false) }

// SetLeftSent records the audio that we send to s (Play, PlayInjected, Send and comfort noise) as the caller's
// channel from now on. It is for a voice agent that talks to s and has no stream of its own.
func (r *Recorder) SetLeftSent(s Source) error { return r.setChannel(0, s, true) }

// SetRightSent is SetLeftSent for the callee's channel.
func (r *Recorder) SetRightSent(s Source) error { return r.setChannel(1, s, true) }

func (r *Recorder) attachAll() error {
	if err := r.setChannel(0, r.cfg.Left, r.cfg.LeftSent); err != nil {
		return err
	}
	if err := r.setChannel(1, r.cfg.Right, r.cfg.RightSent); err != nil {
		r.detachAll()
		return err
	}
	return nil
}

func (r *Recorder) setChannel(i int, s Source, sent bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	if r.streams[i] == s && r.sent[i] == sent {
		return nil
	}
	if s != nil && !s.ClaimRecording(r.channels[i].ring, sent) {
		return errors.New("the stream is being recorded already")
	}
	r.connect(i, r.streams[i], false)
	r.release(i)
	r.streams[i], r.sent[i] = s, sent
	r.connect(i, s, !r.paused && r.err == nil)
	return nil
}

func (r *Recorder) release(i int) {
	if s := r.streams[i]; s != nil {
		s.ReleaseRecording(r.sent[i])
	}
}

// connect lets a stream's packets into the channel's ring, or keeps them out.
func (r *Recorder) connect(i int, s Source, on bool) {
	if s == nil {
		return
	}
	var ring *rtp.Ring
	if on {
		ring = r.channels[i].ring
	}
	s.FeedRecording(ring, r.sent[i])
}

func (r *Recorder) detachAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detach()
}

// detach is detachAll with r.mu held by the caller.
func (r *Recorder) detach() {
	for i, s := range r.streams {
		r.connect(i, s, false)
		r.release(i)
		r.streams[i] = nil
	}
}

// Err returns the error with which the recorder stopped, or nil.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Stats counts packets that were not written in order.
type Stats struct {
	Dropped uint64 // packets lost because the disk was blocked for over a second
	Late    uint64 // packets patched into audio that was already written
}

// Stats returns a snapshot of the counters.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{r.channels[0].ring.Dropped.Load() + r.channels[1].ring.Dropped.Load(), r.late}
}
