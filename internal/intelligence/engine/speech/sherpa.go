package speech

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"soniq/internal/intelligence/engine/speech/plausibility"
	"soniq/internal/intelligence/transcript"
)

// SherpaPrefix precedes the folder of a model in the setting of the transcriber.
const SherpaPrefix = "sherpa:"

// sherpaLoadTimeout limits the loading of library and model: large models are read from disk.
const sherpaLoadTimeout = 2 * time.Minute

// lowLatencyIdleTimeout is how long the low-latency worker is kept without work: a new one would have to load the
// model while a caller waits.
const lowLatencyIdleTimeout = time.Hour

// Sherpa is a recogniser with a model from a folder chosen by the operator: sherpa-onnx in worker processes of this
// binary. Workers start, end and are replaced as those of PocketSphinx. Each holds the whole model in memory. It is
// safe for concurrent use.
type Sherpa struct {
	workerPool
	dir, library string
	loading      sync.WaitGroup
	languages    func() []string // languages of the model; none if they are not known
	terms        targetCache
}

// NewSherpa returns a recogniser with the model of a folder, the library of another ("" for the default search path)
// and a number of workers; 0 means half the cores, at least one. command starts a worker, and arguments are appended
// to it; nil means this binary with the argument "sherpa-worker".
func NewSherpa(command []string, dir, library string, n int) *Sherpa {
	return newSherpaWorkers(command, dir, library, n, 1, "")
}

// NewEnglishSherpa returns a recogniser with an English model whose folder also contains the library. Otherwise it is
// like NewSherpa.
func NewEnglishSherpa(command []string, dir string, n int) *Sherpa {
	s := NewSherpa(command, dir, dir, n)
	s.languages = func() []string { return englishOnly }
	return s
}

func newSherpaWorkers(command []string, dir, library string, n, threads int, pace string) *Sherpa {
	if command == nil {
		command = []string{executablePath(), "sherpa-worker"}
	}
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	s := &Sherpa{dir: dir, library: library, languages: sync.OnceValue(func() []string {
		m, _ := findSherpaModel(dir) // the error is returned when a worker starts
		return m.knownLanguages()
	})}
	s.prepare(append(command[:len(command):len(command)], dir, library, strconv.Itoa(threads), pace), n)
	s.startTimeout, s.explainError = sherpaLoadTimeout, s.explainStartError
	return s
}

// LowLatency returns a recogniser with one worker of its own, for live callers. It runs at normal priority on half
// the cores. Its model takes memory once more while it is used and for an hour after that.
func (s *Sherpa) LowLatency() *Sherpa {
	b := newSherpaWorkers(s.command[:len(s.command)-4], s.dir, s.library, 1, DefaultWorkers(), LowLatency)
	b.idleTimeout, b.languages = lowLatencyIdleTimeout, s.languages
	return b
}

// Wake starts loading the model if no worker runs, and returns at once: a caller will speak soon.
func (s *Sherpa) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.running) > 0 || s.closed {
		return
	}
	s.loading.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), sherpaLoadTimeout)
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
	s.workerPool.Close()
	s.loading.Wait()
}

// Engine returns library and model. The version is empty until a worker has started.
func (s *Sherpa) Engine() transcript.Engine {
	if h := s.lastHello(); h.Engine.Name != "" {
		return h.Engine
	}
	return transcript.Engine{Name: sherpaEngine, Model: filepath.Base(s.dir)}
}

// Memory returns the resident memory of a worker after loading its model, in bytes; 0 before that.
func (s *Sherpa) Memory() int64 { return s.lastHello().Memory }

// CheckLanguage returns an error for a language that the model is known not to know.
func (s *Sherpa) CheckLanguage(language string) error {
	return requireLanguage("the model "+filepath.Base(s.dir), recognizerRemedy, s.languages(), language)
}

// Transcribe recognises one clip. It waits for a free worker; a worker that hangs is killed. The model takes no
// terms: in English, recognised words that sound like terms of the clip are replaced by them.
func (s *Sherpa) Transcribe(ctx context.Context, c transcript.Clip) (transcript.Recognition, error) {
	if err := s.CheckLanguage(c.Language); err != nil {
		return transcript.Recognition{}, err
	}
	r, err := plausibility.Recognize(c, plausibility.Retries, func(c transcript.Clip) (transcript.Recognition, error) {
		return s.decode(ctx, c)
	})
	return s.terms.indexOf(c).correct(r), err
}

// decode recognises one clip as it is.
func (s *Sherpa) decode(ctx context.Context, c transcript.Clip) (transcript.Recognition, error) {
	w, err := s.acquire(ctx)
	if err != nil {
		return transcript.Recognition{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, hangTimeout+20*time.Duration(c.DurationMS())*time.Millisecond)
	defer cancel()
	r, err := w.transcribeSherpa(ctx, c)
	if err != nil {
		s.discard(w)
		return transcript.Recognition{}, fmt.Errorf("recognise %d ms of speech: %w", c.DurationMS(), err)
	}
	s.release(w)
	return r.recognition(c.Language, c.DurationMS()), nil
}

// transcribeSherpa sends one clip to the worker and returns its result.
func (w *workerProcess) transcribeSherpa(ctx context.Context, c transcript.Clip) (sherpaResult, error) {
	var a sherpaResponse
	err := w.within(ctx, func() error {
		if err := writeMessage(w.in, sherpaRequest{Rate: c.Rate, Language: c.Language}, c.PCM); err != nil {
			return err
		}
		_, err := readMessage(w.out, &a)
		return err
	})
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a.Result, err
}

// explainStartError converts the error of a worker that did not start: the library exits its process if it cannot use
// a model.
func (s *Sherpa) explainStartError(err error) error {
	if _, known := transcript.AsMissingDependency(err); known || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) {
		return err
	}
	return &transcript.MissingDependency{Problem: "sherpa-onnx ended while it loaded the model in " + s.dir + ": " +
		strings.TrimPrefix(err.Error(), "recogniser did not start: EOF: "),
		Remedy: "unpack the model again, all of its files, or take another one"}
}
