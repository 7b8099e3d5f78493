package engine

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"soniq/internal/intelligence/transcript"
)

const (
	startLimit = 30 * time.Second // to load library and model
	hangLimit  = 2 * time.Minute  // for a clip, beyond 20 times its length
	idleLimit  = 5 * time.Minute  // a worker without work gives its memory back
	retryAfter = 30 * time.Second // before looking again for what was missing
)

// workers are the worker processes of a recogniser, a bounded number of them. They start when they are needed, are
// started again after a crash, and end when nothing has come for five minutes. It is safe for concurrent use.
type workers struct {
	command []string
	idle    chan *sphinxWorker // workers without work
	slots   chan struct{}      // one token per worker that may exist
	now     func() time.Time
	done    chan struct{}
	load    time.Duration     // how long one may take to start
	keep    time.Duration     // how long one without work is kept
	explain func(error) error // what it means that one did not start; nil leaves it as it is

	mu      sync.Mutex // guards the fields below
	greeted hello      // what the last that started said of itself
	missing error      // why the last start failed
	tried   time.Time
	live    map[*sphinxWorker]bool
	closed  bool
}

// prepare makes room for a number of workers, half the cores where it is 0; command starts one.
func (s *workers) prepare(command []string, n int) {
	if n <= 0 {
		n = DefaultWorkers()
	}
	s.command, s.now, s.done, s.live = command, time.Now, make(chan struct{}), map[*sphinxWorker]bool{}
	s.load, s.keep = startLimit, idleLimit
	s.idle, s.slots = make(chan *sphinxWorker, n), make(chan struct{}, n)
	for range n {
		s.slots <- struct{}{}
	}
}

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

// Ready starts a worker if none runs, and says what is missing when it cannot.
func (s *workers) Ready(ctx context.Context) error {
	w, err := s.take(ctx)
	if err != nil {
		return err
	}
	s.give(w)
	return nil
}

// Close ends all workers and waits for them.
func (s *workers) Close() {
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
func (s *workers) take(ctx context.Context) (*sphinxWorker, error) {
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
func (s *workers) give(w *sphinxWorker) {
	w.rest = time.AfterFunc(s.keep, func() { s.drop(w) })
	s.idle <- w
}

// drop ends a worker and lets another be started.
func (s *workers) drop(w *sphinxWorker) {
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
func (s *workers) start(ctx context.Context) (*sphinxWorker, error) {
	if err := s.lately(); err != nil {
		s.slots <- struct{}{}
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.load)
	defer cancel()
	w, err := startWorker(ctx, exec.Command(s.command[0], s.command[1:]...))
	if err != nil && s.explain != nil {
		err = s.explain(err)
	}
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
	s.live[w], s.greeted = true, w.hello
	return w, nil
}

// hello is what the last worker that started said of itself.
func (s *workers) hello() hello {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeted
}

// lately repeats what was found missing a moment ago.
func (s *workers) lately() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now().Sub(s.tried) < retryAfter {
		return s.missing
	}
	return nil
}
