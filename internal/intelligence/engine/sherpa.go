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

// SherpaPrefix stands before the folder of a model in the setting of the transcriber.
const SherpaPrefix = "sherpa:"

// sherpaStart is how long library and model may take to load: large models come from the disk.
const sherpaStart = 2 * time.Minute

// briskKeep is how long the worker of those who wait is kept without work: the next one would wait for the model.
const briskKeep = time.Hour

// Sherpa is a recogniser with a model that the operator put into a folder: sherpa-onnx in worker processes of this binary.
// Workers start, end and are replaced as those of Sphinx; each has the whole model in its memory.
type Sherpa struct {
	workers
	dir, library string
	waking       sync.WaitGroup
	english      bool // and nothing else is understood
	terms        termTargets
}

// NewSherpa prepares a recogniser with the model of a folder, the library of another ("" for wherever it is found) and a number
// of workers; 0 stands for half the cores, at least one. command starts a worker, to which arguments are added; nil stands for
// this binary with the argument "sherpa-worker".
func NewSherpa(command []string, dir, library string, n int) *Sherpa {
	return newSherpaWorkers(command, dir, library, n, 1, "")
}

// NewEnglish prepares a recogniser with an English model whose folder has the library too; the rest is as with NewSherpa.
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

// Brisk is a recogniser with one worker of its own for those who wait for its answer. It yields to nobody and uses half the
// cores; its model takes memory once more while it is needed, and for an hour after that.
func (s *Sherpa) Brisk() *Sherpa {
	b := newSherpaWorkers(s.command[:len(s.command)-4], s.dir, s.library, 1, DefaultWorkers(), Brisk)
	b.keep, b.english = briskKeep, s.english
	return b
}

// Wake has a worker load its model if none runs, and does not wait for it: somebody is about to speak.
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
		_ = s.Ready(ctx) // what is missing is told to whoever asks for words
	})
}

// Close ends all workers and waits for them.
func (s *Sherpa) Close() {
	s.workers.Close()
	s.waking.Wait()
}

// Engine names library and model; the version is known once a worker has started.
func (s *Sherpa) Engine() transcript.Engine {
	if h := s.hello(); h.Engine.Name != "" {
		return h.Engine
	}
	return transcript.Engine{Name: sherpaEngine, Model: filepath.Base(s.dir)}
}

// Memory is what a worker took when it had loaded its model, in bytes; 0 before that.
func (s *Sherpa) Memory() int64 { return s.hello().Memory }

// Transcribe recognises one clip. It waits for a free worker; a worker that hangs is ended. The model is not told the terms of the clip:
// they are written in English where what it understood sounds like them.
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

// askSherpa has one clip recognised.
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

// ended says what it means when a worker does not come up: the library ends its process where it does not like a model.
func (s *Sherpa) ended(err error) error {
	if _, known := transcript.IsMissing(err); known || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return &transcript.Missing{What: "sherpa-onnx ended while it loaded the model in " + s.dir + ": " + strings.TrimPrefix(err.Error(), "recogniser did not start: EOF: "),
		Help: "unpack the model again, all of its files, or take another one"}
}
