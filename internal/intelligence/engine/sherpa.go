package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"soniq/internal/intelligence/transcript"
)

// SherpaPrefix precedes the folder of a model in the setting of the transcriber.
const SherpaPrefix = "sherpa:"

// sherpaLoadTimeout limits the loading of library and model: large models are read from disk.
const sherpaStart = 2 * time.Minute

// lowLatencyIdleTimeout is how long the low-latency worker is kept without work: a new one would have to load the
// model while a caller waits.
const briskKeep = time.Hour

// Sherpa is a recogniser with a model from a folder chosen by the operator: sherpa-onnx in worker processes of this
// binary. Workers start, end and are replaced as those of PocketSphinx. Each holds the whole model in memory. It is
// safe for concurrent use.
type Sherpa struct {
	workers
	dir, library string
	waking       sync.WaitGroup
	english      bool // the model supports English only
	terms        termTargets
}

// NewSherpa returns a recogniser with the model of a folder, the library of another ("" for the default search path)
// and a number of workers; 0 means half the cores, at least one. command starts a worker, and arguments are appended
// to it; nil means this binary with the argument "sherpa-worker".
func NewSherpa(command []string, dir, library string, n int) *Sherpa {
	return newSherpaWorkers(command, dir, library, n, 1, "")
}

// NewEnglishSherpa returns a recogniser with an English model whose folder also contains the library. Otherwise it is
// like NewSherpa.
func NewEnglish(command []string, dir string, n int) *Sherpa {
	s := NewSherpa(command, dir, dir, n)
	s.english = true
	return s
}

func newSherpaWorkers(command []string, dir, library string, n, threads int, pace string) *Sherpa {
	if command == nil {
		command = []string{self(), "sherpa-worker"}
	}
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	s := &Sherpa{dir: dir, library: library}
	s.prepare(append(command[:len(command):len(command)], dir, library, strconv.Itoa(threads), pace), n)
	s.load, s.explain = sherpaStart, s.ended
	return s
}

// LowLatency returns a recogniser with one worker of its own, for live callers. It runs at normal priority on half
// the cores. Its model takes memory once more while it is used and for an hour after that.
func (s *Sherpa) Brisk() *Sherpa {
	b := newSherpaWorkers(s.command[:len(s.command)-4], s.dir, s.library, 1, DefaultWorkers(), Brisk)
	b.keep, b.english = briskKeep, s.english
	return b
}

// Wake starts loading the model if no worker runs, and returns at once: a caller will speak soon.
func (s *Sherpa) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) > 0 || s.closed {
		return
	}
	s.waking.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), sherpaStart)
		defer cancel()
		go func() {
			select {
			case <-s.done:
				cancel()
			case <-ctx.Done():
			}
		}()
		_ = s.Ready(ctx) // an error is returned again by Transcribe
	})
}

// Close ends all workers and waits for them.
func (s *Sherpa) Close() {
	s.workers.Close()
	s.waking.Wait()
}

// Engine returns library and model. The version is empty until a worker has started.
func (s *Sherpa) Engine() transcript.Engine {
	if h := s.hello(); h.Engine.Name != "" {
		return h.Engine
	}
	return transcript.Engine{Name: sherpaEngine, Model: filepath.Base(s.dir)}
}

// Memory returns the resident memory of a worker after loading its model, in bytes; 0 before that.
func (s *Sherpa) Memory() int64 { return s.hello().Memory }

// Transcribe recognises one clip. It waits for a free worker; a worker that hangs is killed. The model takes no
// terms: in English, recognised words that sound like terms of the clip are replaced by them.
func (s *Sherpa) Transcribe(ctx context.Context, c transcript.Clip) (transcript.Heard, error) {
	if s.english {
		if err := needEnglish(c.Language); err != nil {
			return transcript.Heard{}, err
		}
	}
	w, err := s.take(ctx)
	if err != nil {
		return transcript.Heard{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, hangLimit+20*time.Duration(c.DurationMS())*time.Millisecond)
	defer cancel()
	r, err := w.askSherpa(ctx, c)
	if err != nil {
		s.drop(w)
		return transcript.Heard{}, fmt.Errorf("recognise %d ms of speech: %w", c.DurationMS(), err)
	}
	s.give(w)
	return s.terms.of(c).respelt(r.heard(c.Language, c.DurationMS())), nil
}

// transcribeSherpa sends one clip to the worker and returns its result.
func (w *sphinxWorker) askSherpa(ctx context.Context, c transcript.Clip) (sherpaResult, error) {
	var a sherpaAnswer
	err := w.within(ctx, func() error {
		if err := send(w.in, sherpaQuestion{Rate: c.Rate, Language: c.Language}, c.PCM); err != nil {
			return err
		}
		_, err := receive(w.out, &a)
		return err
	})
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a.Result, err
}

// explainStartError converts the error of a worker that did not start: the library exits its process if it cannot use
// a model.
func (s *Sherpa) ended(err error) error {
	if _, known := transcript.IsMissing(err); known || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return &transcript.Missing{What: "sherpa-onnx ended while it loaded the model in " + s.dir + ": " + strings.TrimPrefix(err.Error(), "recogniser did not start: EOF: "),
		Help: "unpack the model again, all of its files, or take another one"}
}
