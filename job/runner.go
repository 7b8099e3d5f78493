package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"soniq/db"
)

// A Handler does one job. Nil ends the job; Retry says when to come back; ErrDead gives up; any other
// error is tried again with growing delay.
type Handler func(ctx context.Context, j Job) error

// Options of a queue.
type Options struct {
	Workers int           // jobs at once
	PerLane int           // jobs at once in one lane; 0: no limit
	Timeout time.Duration // of one job; also the lease
}

// A Runner claims the jobs of one queue and does them.
type Runner struct {
	DB      *db.DB
	Queue   *Queue
	Name    string // of the queue
	Node    string // who claims
	Log     *slog.Logger
	Options Options

	handlers map[string]Handler
	cancel   context.CancelFunc
	stopped  chan struct{}
	finished chan string // lanes whose job is done
	mu       sync.Mutex  // guards busy and lanes
	busy     int
	lanes    map[string]int
	running  sync.WaitGroup
}

// Handle says what does the jobs of a kind. Call it before Start.
func (r *Runner) Handle(kind string, h Handler) {
	if r.handlers == nil {
		r.handlers = map[string]Handler{}
	}
	r.handlers[kind] = h
}

// poll is the safety net below the wake-ups.
const poll = time.Second

// Start takes back what this node left running when it died, and begins.
func (r *Runner) Start(ctx context.Context) error {
	if err := r.recover(ctx); err != nil {
		return fmt.Errorf("recover jobs of %s: %w", r.Name, err)
	}
	r.lanes = map[string]int{}
	r.finished = make(chan string, r.Options.Workers+1)
	r.stopped = make(chan struct{})
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go r.loop(ctx)
	return nil
}

// Stop claims nothing more and waits for the running jobs; the context bounds the wait, after which they are cancelled.
func (r *Runner) Stop(ctx context.Context) {
	if r.cancel == nil {
		return
	}
	r.cancel()
	<-r.stopped
	done := make(chan struct{})
	go func() { r.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (r *Runner) loop(ctx context.Context) {
	defer close(r.stopped)
	wake := r.Queue.Bus.Subscribe(wakeSubject(r.Name), 1)
	defer wake.Close()
	for {
		n, next, err := r.claimAndRun(ctx)
		if err != nil && ctx.Err() == nil {
			r.Log.Error("jobs not claimed", "queue", r.Name, "err", err)
		}
		if n > 0 && err == nil {
			continue
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-wake.C:
		case <-r.finished:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// claimAndRun claims what there is room for and starts it. It returns how many, and how long to wait for more.
func (r *Runner) claimAndRun(ctx context.Context) (int, time.Duration, error) {
	free := r.free()
	if free == 0 {
		return 0, poll, nil
	}
	due, next, err := r.due(ctx)
	if err != nil || !due {
		return 0, next, err
	}
	jobs, err := r.claim(ctx, free)
	if err != nil {
		return 0, poll, err
	}
	for _, j := range jobs {
		r.begin(j)
	}
	return len(jobs), poll, nil
}

func (r *Runner) free() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Options.Workers - r.busy
}

// room is how many more jobs of a lane may run.
func (r *Runner) room(lane string, free int) int {
	if r.Options.PerLane == 0 {
		return free
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return min(free, r.Options.PerLane-r.lanes[lane])
}

func (r *Runner) begin(j Job) {
	r.mu.Lock()
	r.busy++
	r.lanes[j.Lane]++
	r.mu.Unlock()
	r.running.Add(1)
	go func() {
		defer r.running.Done()
		r.do(j)
		r.end(j)
	}()
}

func (r *Runner) end(j Job) {
	r.mu.Lock()
	r.busy--
	if r.lanes[j.Lane]--; r.lanes[j.Lane] == 0 {
		delete(r.lanes, j.Lane)
	}
	r.mu.Unlock()
	select {
	case r.finished <- j.Lane:
	default:
	}
}

// do runs the handler and writes down how it ended. The node's own shutdown does not cancel it.
func (r *Runner) do(j Job) {
	ctx, cancel := context.WithTimeout(context.Background(), r.Options.Timeout)
	defer cancel()
	err := r.guarded(ctx, j)
	if err := r.finish(context.Background(), j, err); err != nil {
		r.Log.Error("end of job not written", "job", j.ID, "kind", j.Kind, "err", err)
	}
}

func (r *Runner) guarded(ctx context.Context, j Job) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic: %v\n%s", x, debug.Stack())
		}
	}()
	h, ok := r.handlers[j.Kind]
	if !ok {
		return fmt.Errorf("no handler for %s: %w", j.Kind, ErrDead)
	}
	return h(ctx, j)
}

// backoff is the delay after the n-th failed attempt where the handler names none.
func backoff(attempt int) time.Duration {
	return min(time.Duration(attempt*attempt*attempt)*time.Second, 6*time.Hour)
}

func (r *Runner) finish(ctx context.Context, j Job, err error) error {
	if err == nil {
		return r.DB.Tx(ctx, func(tx db.Querier) error { return r.close(ctx, tx, j, 2, "") })
	}
	var again *Retry
	asked := errors.As(err, &again)
	if !asked {
		r.Log.Warn("job failed", "job", j.ID, "kind", j.Kind, "attempt", j.Attempt, "err", err)
	}
	if errors.Is(err, ErrDead) || j.Last() {
		return r.DB.Tx(ctx, func(tx db.Querier) error { return r.close(ctx, tx, j, 3, err.Error()) })
	}
	after, order := backoff(j.Attempt), j.OrderKey
	if asked {
		after = again.After
		if again.Unordered {
			order = ""
		}
	}
	return r.DB.Tx(ctx, func(tx db.Querier) error { return r.again(ctx, tx, j, after, order, err) })
}
