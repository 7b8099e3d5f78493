package ai

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"soniq/transcript"
)

const (
	startLimit = 30 * time.Second // to load library and model
	hangLimit  = 2 * time.Minute  // for a clip, beyond 20 times its length
	idleLimit  = 5 * time.Minute  // a worker without work gives its memory back
	retryAfter = 30 * time.Second // before looking again for what was missing
)

// Sphinx is the builtin recogniser: pocketsphinx in worker processes of this binary, English only. Workers start
// with the first clip, are started again after a crash, and end when nothing has come for five minutes.
type Sphinx struct {
	command []string
	idle    chan *sphinxWorker // workers without work
	slots   chan struct{}      // one token per worker that may exist
	now     func() time.Time
	done    chan struct{}

	mu      sync.Mutex // guards the fields below
	missing error      // why the last start failed
	tried   time.Time
	live    map[*sphinxWorker]bool
	closed  bool
}

// NewSphinx prepares a recogniser with a number of workers; 0 stands for half the cores, at least one. command
// starts a worker; nil stands for this binary with the argument "asr-worker".
func NewSphinx(command []string, workers int) *Sphinx {
	if command == nil {
		command = []string{self(), "asr-worker"}
	}
	if workers <= 0 {
		workers = DefaultWorkers()
	}
	s := &Sphinx{command: command, idle: make(chan *sphinxWorker, workers), slots: make(chan struct{}, workers),
		now: time.Now, done: make(chan struct{}), live: map[*sphinxWorker]bool{}}
	for range workers {
		s.slots <- struct{}{}
	}
	return s
}

// NewBriskSphinx prepares a recogniser with one worker for those who wait for its answer.
func NewBriskSphinx() *Sphinx { return NewSphinx([]string{self(), "asr-worker", Brisk}, 1) }

// DefaultWorkers is half the cores, at least one.
func DefaultWorkers() int { return max(runtime.NumCPU()/2, 1) }

// self is the running binary, even when its file has been replaced meanwhile.
func self() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// Engine names the builtin recogniser.
func (s *Sphinx) Engine() transcript.Engine { return sphinxIdentity }

// Ready starts a worker if none runs, and says what is missing when it cannot.
func (s *Sphinx) Ready(ctx context.Context) error {
	w, err := s.take(ctx)
	if err != nil {
		return err
	}
	s.give(w)
	return nil
}

// Transcribe recognises one clip. It waits for a free worker; a worker that hangs is ended. The limit is far above
// what a clip takes, as workers yield to everything else on a busy machine.
func (s *Sphinx) Transcribe(ctx context.Context, c transcript.Clip) (transcript.Heard, error) {
	if c.Language != "" && !strings.HasPrefix(strings.ToLower(c.Language), "en") {
		return transcript.Heard{}, &transcript.Missing{What: "the builtin recogniser understands English only, not " + c.Language,
			Help: "set SONIQ_TRANSCRIBER to the URL of an OpenAI-compatible server"}
	}
	w, err := s.take(ctx)
	if err != nil {
		return transcript.Heard{}, err
	}
	limit := hangLimit + 20*time.Duration(c.DurationMS())*time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	words, err := w.ask(ctx, c)
	if err != nil {
		s.drop(w)
		return transcript.Heard{}, fmt.Errorf("recognise %d ms of speech: %w", c.DurationMS(), err)
	}
	s.give(w)
	return heard(words), nil
}

// Close ends all workers and waits for them.
func (s *Sphinx) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	var all []*sphinxWorker
	for w := range s.live {
		all = append(all, w)
	}
	s.mu.Unlock()
	close(s.done)
	for _, w := range all {
		w.stop()
	}
}

// take gives an idle worker, or starts one where there may be more.
func (s *Sphinx) take(ctx context.Context) (*sphinxWorker, error) {
	select {
	case w := <-s.idle:
		if w.rest.Stop() {
			return w, nil
		}
		return s.take(ctx) // its rest is over just now; the timer ends it
	default:
	}
	select {
	case w := <-s.idle:
		if w.rest.Stop() {
			return w, nil
		}
		return s.take(ctx)
	case <-s.slots:
		return s.start(ctx)
	case <-s.done:
		return nil, errors.New("recogniser is closed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// give puts a worker back; it ends by itself when it is not taken again in time.
func (s *Sphinx) give(w *sphinxWorker) {
	w.rest = time.AfterFunc(idleLimit, func() { s.drop(w) })
	s.idle <- w
}

// drop ends a worker and lets another be started.
func (s *Sphinx) drop(w *sphinxWorker) {
	s.mu.Lock()
	known := s.live[w]
	delete(s.live, w)
	s.mu.Unlock()
	w.stop()
	if known {
		s.slots <- struct{}{}
	}
}

// start starts a worker in the slot that was taken. What is missing is looked for again only after a while.
func (s *Sphinx) start(ctx context.Context) (*sphinxWorker, error) {
	if err := s.lately(); err != nil {
		s.slots <- struct{}{}
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	w, err := startWorker(ctx, exec.Command(s.command[0], s.command[1:]...))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing, s.tried = nil, s.now()
	if _, ok := transcript.IsMissing(err); ok {
		s.missing = err
	}
	if err == nil && s.closed {
		w.stop()
		err = errors.New("recogniser is closed")
	}
	if err != nil {
		s.slots <- struct{}{}
		return nil, err
	}
	s.live[w] = true
	return w, nil
}

// lately repeats what was found missing a moment ago.
func (s *Sphinx) lately() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now().Sub(s.tried) < retryAfter {
		return s.missing
	}
	return nil
}

// sentencePause is a silence between two words that ends a sentence.
const sentencePause = 150 // ms

// heard makes readable text of recognised words: a pause ends a sentence.
func heard(words []transcript.Word) transcript.Heard {
	h := transcript.Heard{Words: words}
	var text, open []string
	for i, w := range words {
		h.Confidence += w.Confidence / float64(len(words))
		if i > 0 && w.StartMS-words[i-1].EndMS >= sentencePause {
			text, open = append(text, readable(open)), nil
		}
		open = append(open, w.Text)
	}
	if len(open) > 0 {
		text = append(text, readable(open))
	}
	h.Text = strings.Join(text, " ")
	return h
}
