package speech

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
	defaultStartTimeout = 30 * time.Second // for loading library and model
	hangTimeout         = 2 * time.Minute  // for a clip, beyond 20 times its length
	defaultIdleTimeout  = 5 * time.Minute  // a worker without work is ended, which frees its memory
	retryAfter          = 30 * time.Second // before retrying after a missing dependency
)

// workerPool holds a bounded number of worker processes of a recogniser. They start on demand, are restarted after a
// crash, and end after five minutes without requests. It is safe for concurrent use.
type workerPool struct {
	command      []string
	idle         chan *workerProcess // workers without work
	slots        chan struct{}       // one token per worker that may exist
	now          func() time.Time
	done         chan struct{}
	startTimeout time.Duration     // time limit of a start
	idleTimeout  time.Duration     // idle timeout
	explainError func(error) error // converts the error of a failed start; nil leaves it unchanged

	mu           sync.Mutex  // guards the fields below
	lastGreeting workerHello // first message of the worker that started last
	startError   error       // why the last start failed
	lastStart    time.Time
	running      map[*workerProcess]bool
	closed       bool
}

// prepare initialises a pool of n workers, or half the cores if n is 0; command starts one.
func (s *workerPool) prepare(command []string, n int) {
	if n <= 0 {
		n = DefaultWorkers()
	}
	s.command, s.now, s.done, s.running = command, time.Now, make(chan struct{}), map[*workerProcess]bool{}
	s.startTimeout, s.idleTimeout = defaultStartTimeout, defaultIdleTimeout
	s.idle, s.slots = make(chan *workerProcess, n), make(chan struct{}, n)
	for range n {
		s.slots <- struct{}{}
	}
}

// DefaultWorkers returns half the number of cores, at least one.
func DefaultWorkers() int { return max(runtime.NumCPU()/2, 1) }

// executablePath returns the path of the running binary. On Linux it is valid even if the file has been replaced
// since the start.
func executablePath() string {
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
func (s *workerPool) Ready(ctx context.Context) error {
	w, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	s.release(w)
	return nil
}

// Close ends all workers and waits for them.
func (s *workerPool) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	var all []*workerProcess
	for w := range s.running {
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
func (s *workerPool) acquire(ctx context.Context) (*workerProcess, error) {
	select {
	case w := <-s.idle:
		if w.idleTimer.Stop() {
			return w, nil
		}
		return s.acquire(ctx) // its idle timeout has just expired; the timer ends it
	default:
	}
	select {
	case w := <-s.idle:
		if w.idleTimer.Stop() {
			return w, nil
		}
		return s.acquire(ctx)
	case <-s.slots:
		return s.start(ctx)
	case <-s.done:
		return nil, errors.New("recogniser is closed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// release returns a worker to the pool; it is ended if it is not acquired again within the idle timeout.
func (s *workerPool) release(w *workerProcess) {
	w.idleTimer = time.AfterFunc(s.idleTimeout, func() { s.discard(w) })
	s.idle <- w
}

// discard ends a worker and frees its slot.
func (s *workerPool) discard(w *workerProcess) {
	s.mu.Lock()
	known := s.running[w]
	delete(s.running, w)
	s.mu.Unlock()
	w.stop()
	if known {
		s.slots <- struct{}{}
	}
}

// start starts a worker in a slot that was taken. After a missing dependency it retries only after retryAfter.
func (s *workerPool) start(ctx context.Context) (*workerProcess, error) {
	if err := s.recentStartError(); err != nil {
		s.slots <- struct{}{}
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.startTimeout)
	defer cancel()
	w, err := startWorker(ctx, exec.Command(s.command[0], s.command[1:]...))
	if err != nil && s.explainError != nil {
		err = s.explainError(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startError, s.lastStart = nil, s.now()
	if _, ok := transcript.AsMissingDependency(err); ok {
		s.startError = err
	}
	if err == nil && s.closed {
		w.stop()
		err = errors.New("recogniser is closed")
	}
	if err != nil {
		s.slots <- struct{}{}
		return nil, err
	}
	s.running[w], s.lastGreeting = true, w.hello
	return w, nil
}

// lastHello returns the first message of the worker that started last.
func (s *workerPool) lastHello() workerHello {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastGreeting
}

// recentStartError returns the missing dependency that was found less than retryAfter ago.
func (s *workerPool) recentStartError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now().Sub(s.lastStart) < retryAfter {
		return s.startError
	}
	return nil
}
