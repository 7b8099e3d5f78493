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
	startLimit = 30 * time.Second // for loading library and model
	hangLimit  = 2 * time.Minute  // for a clip, beyond 20 times its length
	idleLimit  = 5 * time.Minute  // a worker without work is ended, which frees its memory
	retryAfter = 30 * time.Second // before retrying after a missing dependency
)

// workerPool holds a bounded number of worker processes of a recogniser. They start on demand, are restarted after a
// crash, and end after five minutes without requests. It is safe for concurrent use.
type workers struct {
	command []string
	idle    chan *sphinxWorker // workers without work
	slots   chan struct{}      // one token per worker that may exist
	now     func() time.Time
	done    chan struct{}
	load    time.Duration     // time limit of a start
	keep    time.Duration     // idle timeout
	explain func(error) error // converts the error of a failed start; nil leaves it unchanged

	mu      sync.Mutex // guards the fields below
	greeted hello      // first message of the worker that started last
	missing error      // why the last start failed
	tried   time.Time
	live    map[*sphinxWorker]bool
	closed  bool
}

// prepare initialises a pool of n workers, or half the cores if n is 0; command starts one.
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

// DefaultWorkers returns half the number of cores, at least one.
func DefaultWorkers() int { return max(runtime.NumCPU()/2, 1) }

// executablePath returns the path of the running binary. On Linux it is valid even if the file has been replaced
// since the start.
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

// Ready starts a worker if none runs, and returns a *transcript.MissingDependency if one is missing.
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

// acquire returns an idle worker, or starts one if fewer than the maximum run. It waits until one is free or ctx
// ends.
func (s *workers) take(ctx context.Context) (*sphinxWorker, error) {
	select {
	case w := <-s.idle:
		if w.rest.Stop() {
			return w, nil
		}
		return s.take(ctx) // its idle timeout has just expired; the timer ends it
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

// release returns a worker to the pool; it is ended if it is not acquired again within the idle timeout.
func (s *workers) give(w *sphinxWorker) {
	w.rest = time.AfterFunc(s.keep, func() { s.drop(w) })
	s.idle <- w
}

// discard ends a worker and frees its slot.
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

// start starts a worker in a slot that was taken. After a missing dependency it retries only after retryAfter.
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

// lastHello returns the first message of the worker that started last.
func (s *workers) hello() hello {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeted
}

// recentStartError returns the missing dependency that was found less than retryAfter ago.
func (s *workers) lately() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now().Sub(s.tried) < retryAfter {
		return s.missing
	}
	return nil
}
