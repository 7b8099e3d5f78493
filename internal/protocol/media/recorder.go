package media

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// partSuffix marks a recording that runs, or was cut by a crash.
const partSuffix = ".part"

// RecordConfig says what to record where.
type RecordConfig struct {
	Path        string      // final name; Path.part while running, its folder is made if missing
	Left, Right *Stream     // caller and callee; nil is silence until SetLeft, SetRight
	LeftSent    bool        // the left channel is what the stream is sent by our own voice, in place of what it says
	RightSent   bool        // the same of the right channel
	Codec       Codec       // G.711 law of the file, µ-law for other codecs; legs that use another are converted
	Wideband    bool        // linear at 16 kHz in place of G.711
	Mono        bool        // one channel with both in the finished file; until then, and for the Tap, there are two
	Append      bool        // go on with a Path.part that a restart left, if there is one, with silence for the time between
	Tap         func(Chunk) // live audio off the packet path, from where this recorder begins; may be nil
	OnError     func(error) // called once, from its own goroutine, if the recorder gives up (disk full); may be nil
}

// A Recorder writes one call's two channels into Path.part: a WAV header that
// says "no samples yet" and then raw samples, left and right by turns.
//
// Packets reach it through a ring per channel that the packet loop fills and a
// few goroutines shared by all recorders empty: about 0.3 s after they came,
// audio is in the file, and at most 1 s later on the disk. What comes later than
// that is patched into its place.
type Recorder struct {
	engine *Engine
	cfg    RecordConfig
	layout layout
	file   *os.File
	device uint64 // file system, for syncing many at once
	start  int64  // of position 0, on the engine's clock
	began  int64  // position at which this recorder took over
	dirty  atomic.Bool
	tap    *tap
	wg     sync.WaitGroup // OnError

	mu      sync.Mutex // guards all below
	until   int64      // position at which it was stopped; 0: it was not
	lanes   [2]lane
	streams [2]*Stream
	sent    [2]bool // the channel has what the stream is sent
	paused  bool
	flushed int64 // samples per channel in the file
	late    uint64
	closed  bool
	err     error
}

// Record starts recording. A stream can be in one recorder at a time.
func (e *Engine) Record(cfg RecordConfig) (*Recorder, error) {
	r, err := e.newRecorder(cfg)
	if err != nil {
		return nil, fmt.Errorf("record to %s: %w", cfg.Path, err)
	}
	if err := r.attachAll(); err != nil {
		r.abandon()
		return nil, fmt.Errorf("record to %s: %w", cfg.Path, err)
	}
	if cfg.Tap != nil {
		r.tap = startTap(r, cfg.Tap)
	}
	if !e.rec.add(r) {
		r.detachAll()
		if r.tap != nil {
			r.tap.cancel()
		}
		r.abandon()
		return nil, ErrClosed
	}
	return r, nil
}

func (e *Engine) newRecorder(cfg RecordConfig) (*Recorder, error) {
	if err := os.MkdirAll(filepath.Dir(cfg.Path), 0o700); err != nil {
		return nil, err
	}
	r := &Recorder{engine: e, cfg: cfg, layout: layoutOf(cfg)}
	if err := r.openFile(); err != nil {
		return nil, err
	}
	r.device = deviceOf(r.file)
	r.lanes = [2]lane{newLane(r.layout), newLane(r.layout)}
	return r, nil
}

// openFile makes the .part, or takes up the one there is.
func (r *Recorder) openFile() (err error) {
	r.start = r.engine.clock()
	if r.cfg.Append {
		if err = r.takeUp(); err == nil || !errors.Is(err, os.ErrNotExist) && !errors.Is(err, ErrNoAudio) {
			return err
		}
	}
	// An older .part of that name is a crash's and not ours to overwrite.
	flags := os.O_CREATE | os.O_EXCL | os.O_RDWR
	if errors.Is(err, ErrNoAudio) { // of the one that was to be taken up there is nothing
		flags = os.O_TRUNC | os.O_RDWR
	}
	if r.file, err = os.OpenFile(r.cfg.Path+partSuffix, flags, 0o600); err != nil {
		return err
	}
	h := r.layout.header(0)
	if _, err := r.file.WriteAt(h[:], 0); err != nil {
		r.abandon()
		return err
	}
	return nil
}

// abandon removes a recording that never began; one that was taken up stays.
func (r *Recorder) abandon() {
	_ = r.file.Close()
	if r.began == 0 {
		_ = os.Remove(r.file.Name())
	}
}

// Pause keeps what is said from now on out of the file: silence is written until Resume.
func (r *Recorder) Pause() { r.setPaused(true) }

// Resume records again.
func (r *Recorder) Resume() { r.setPaused(false) }

func (r *Recorder) setPaused(p bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.err != nil {
		return
	}
	r.paused = p
	for i, s := range r.streams {
		r.wire(i, s, !p)
	}
}

// SetLeft records s as the caller's channel from now on (transfer); nil is
// silence. It fails when s is in another recorder.
func (r *Recorder) SetLeft(s *Stream) error { return r.replace(0, s, false) }

// SetRight records s as the callee's channel from now on.
func (r *Recorder) SetRight(s *Stream) error { return r.replace(1, s, false) }

// SetLeftSent records what s is sent by our own voice (Play, PlayFeed, Send and comfort) as the caller's channel from now on, in place of
// what somebody says: a machine that talks to s has no stream.
func (r *Recorder) SetLeftSent(s *Stream) error { return r.replace(0, s, true) }

// SetRightSent is SetLeftSent of the callee's channel.
func (r *Recorder) SetRightSent(s *Stream) error { return r.replace(1, s, true) }

func (r *Recorder) attachAll() error {
	if err := r.replace(0, r.cfg.Left, r.cfg.LeftSent); err != nil {
		return err
	}
	if err := r.replace(1, r.cfg.Right, r.cfg.RightSent); err != nil {
		r.detachAll()
		return err
	}
	return nil
}

func (r *Recorder) replace(i int, s *Stream, sent bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	if r.streams[i] == s && r.sent[i] == sent {
		return nil
	}
	if s != nil && !s.claim(r.lanes[i].ring, sent) {
		return errors.New("the stream is being recorded already")
	}
	r.wire(i, r.streams[i], false)
	r.release(i)
	r.streams[i], r.sent[i] = s, sent
	r.wire(i, s, !r.paused && r.err == nil)
	return nil
}

// claim makes ring the one recording ring of the stream, or of what it is sent.
func (s *Stream) claim(ring *ring, sent bool) bool {
	if sent {
		v := &s.voice
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.claimed != nil && v.claimed != ring {
			return false
		}
		v.claimed = ring
		return true
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if s.in.claimed != nil && s.in.claimed != ring {
		return false
	}
	s.in.claimed = ring
	return true
}

func (r *Recorder) release(i int) {
	if s := r.streams[i]; s != nil && r.sent[i] {
		s.voice.mu.Lock()
		s.voice.claimed = nil
		s.voice.mu.Unlock()
	} else if s != nil {
		s.in.mu.Lock()
		s.in.claimed = nil
		s.in.mu.Unlock()
	}
}

// wire lets a stream's packets into the channel's ring, or keeps them out.
func (r *Recorder) wire(i int, s *Stream, on bool) {
	if s == nil {
		return
	}
	if r.sent[i] {
		s.voice.mu.Lock()
		defer s.voice.mu.Unlock()
		s.voice.tee = nil
		if on {
			s.voice.tee = r.lanes[i].ring
		}
		return
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	s.in.tee = nil
	if on && !s.in.closed {
		s.in.tee = r.lanes[i].ring
	}
}

func (r *Recorder) detachAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detach()
}

// detach is detachAll for who holds r.mu.
func (r *Recorder) detach() {
	for i, s := range r.streams {
		r.wire(i, s, false)
		r.release(i)
		r.streams[i] = nil
	}
}

// Err returns why the recorder gave up, or nil.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// RecorderStats counts what did not reach its place at once.
type RecorderStats struct {
	Dropped uint64 // packets lost because the disk stood still for over a second
	Late    uint64 // packets patched into audio already written
}

// Stats returns a snapshot.
func (r *Recorder) Stats() RecorderStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return RecorderStats{r.lanes[0].ring.dropped.Load() + r.lanes[1].ring.dropped.Load(), r.late}
}
