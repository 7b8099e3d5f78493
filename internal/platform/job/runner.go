package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// A Handler does one job. Nil ends the job; Retry says when to come back; ErrDead gives up; any other
// error is tried again with growing delay.
type Handler func(ctx context.Context, j Job) error

// Options of a queue.
type Options struct {
	Workers int           // jobs at once
	PerLane int           // jobs at once in one lane; 0: no limit
	Timeout time.Duration // of one job; also the lease
	// Pace is the least time between two looks for jobs. Where much is going on and nobody waits for the moment, one look then
	// serves all that came meanwhile.
	Pace time.Duration
	// LaneLimit narrows PerLane for single lanes; may be nil. It must not wait.
	LaneLimit func(lane string) int
	// Record writes what handlers reported, in the transaction that ends their jobs; many reports at a time. When it
	// fails, it is called again for each job by itself, and those whose report fails then are tried again.
	Record func(ctx context.Context, tx db.Querier, reports []any) error
}

// A Runner claims the jobs of one queue and does them.
type Runner struct {
	DB      *db.DB
	Queue   *Queue
	Name    string // of the queue
	Node    string // who claims; no two runners of a queue may share it
	Log     *slog.Logger
	Options Options

	handlers map[string]Handler
	turns    []string // lanes whose turn is still to come; owned by the loop

	cancel   context.CancelFunc // ends claiming
	abort    context.CancelFunc // ends running jobs
	lifetime context.Context    // of running jobs
	stopped  chan struct{}      // closed when the loop has returned
	finished chan struct{}      // a job has ended since the last look
	ends     chan *end
	running  sync.WaitGroup
	writing  sync.WaitGroup

	doubt bool // the answer to a claim was lost; owned by the loop

	mu    sync.Mutex // guards the four below
	works map[*end]*work
	busy  int
	lanes map[string]int
	mine  map[string]int // jobs whose end is not written yet; twice where one is claimed again at that moment
}

// Handle says what does the jobs of a kind. Call it before Start.
func (r *Runner) Handle(kind string, h Handler) {
	if r.handlers == nil {
		r.handlers = map[string]Handler{}
	}
	r.handlers[kind] = h
}

// poll is the safety net below the wake-ups, and expiry how often other nodes' leases are looked at.
const (
	poll   = time.Second
	expiry = 10 * time.Second
)

// Start takes back what this node left running when it died, and begins.
func (r *Runner) Start(ctx context.Context) error {
	if err := errors.Join(r.recover(ctx), r.expire(ctx)); err != nil {
		return fmt.Errorf("recover jobs of %s: %w", r.Name, err)
	}
	r.lanes, r.mine = map[string]int{}, map[string]int{}
	r.finished, r.stopped, r.ends = make(chan struct{}, 1), make(chan struct{}), make(chan *end)
	ctx = context.WithoutCancel(ctx)
	r.lifetime, r.abort = context.WithCancel(ctx)
	ctx, r.cancel = context.WithCancel(ctx)
	for range writers {
		r.writing.Go(func() { r.write(r.ends) })
	}
	go r.loop(ctx)
	return nil
}

// Stop claims nothing more and waits for the running jobs; when the context ends, they are cancelled and given a moment
// to notice. It returns when the last of them is written down.
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
		r.abort()
		<-done
	}
	r.abort()
	close(r.ends)
	r.writing.Wait()
	r.cancel = nil
}

func (r *Runner) loop(ctx context.Context) {
	defer close(r.stopped)
	wake := r.Queue.Bus.Subscribe(wakeSubject(r.Name), 1)
	defer wake.Close()
	expired := time.NewTicker(expiry)
	defer expired.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		looked := time.Now()
		n, next, err := r.claimAndRun(ctx)
		r.doubt = r.doubt || db.IsAway(err)
		if r.doubt && err == nil {
			err = r.disown(ctx)
			r.doubt = err != nil
		}
		if err != nil && ctx.Err() == nil {
			r.Log.Error("jobs not claimed", "queue", r.Name, "err", err)
		}
		if n > 0 && err == nil && r.breathe(ctx, looked) {
			continue
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-wake.C:
		case <-r.finished:
		case <-timer.C:
		case <-expired.C:
			if err := r.expire(ctx); err != nil && ctx.Err() == nil {
				r.Log.Error("leases not looked at", "queue", r.Name, "err", err)
			}
		}
		if !r.breathe(ctx, looked) {
			return
		}
	}
}

// breathe waits for the time of the next look; it returns false where ctx has ended.
func (r *Runner) breathe(ctx context.Context, looked time.Time) bool {
	wait := r.Options.Pace - time.Since(looked)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

// claimAndRun claims what there is room for and starts it. It returns how many, and how long to wait for more.
func (r *Runner) claimAndRun(ctx context.Context) (int, time.Duration, error) {
	free := r.free()
	if free == 0 {
		return 0, poll, nil
	}
	jobs, next, err := r.claim(ctx, free)
	if err != nil {
		return 0, poll, err
	}
	for _, j := range jobs {
		r.begin(j)
	}
	return len(jobs), next, nil
}

func (r *Runner) free() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Options.Workers - r.busy
}

// room is how many more jobs of a lane may run.
func (r *Runner) room(lane string) int {
	limit := r.Options.Workers
	if r.Options.PerLane > 0 {
		limit = r.Options.PerLane
	}
	if r.Options.LaneLimit != nil {
		limit = min(limit, r.Options.LaneLimit(lane))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return limit - r.lanes[lane]
}

func (r *Runner) begin(j Job) {
	r.mu.Lock()
	r.busy++
	r.lanes[j.Lane]++
	r.mine[j.ID]++
	r.mu.Unlock()
	r.running.Go(func() {
		e := r.do(j)
		r.leave(j)
		r.look()
		r.ends <- e
		<-e.written
		r.letGo(j)
		r.look()
	})
}

// letGo forgets a job whose end is written.
func (r *Runner) letGo(j Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mine[j.ID]--; r.mine[j.ID] == 0 {
		delete(r.mine, j.ID)
	}
}

// leave gives the worker back. That the end of the job is not written yet holds up only jobs of its order key.
func (r *Runner) leave(j Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
	if r.lanes[j.Lane]--; r.lanes[j.Lane] == 0 {
		delete(r.lanes, j.Lane)
	}
}

// look makes the loop look for jobs.
func (r *Runner) look() {
	select {
	case r.finished <- struct{}{}:
	default:
	}
}

// do runs the handler. The node's own shutdown does not cancel it.
func (r *Runner) do(j Job) *end {
	e := &end{job: j, written: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.WithValue(r.lifetime, endKey{}, e), r.Options.Timeout)
	defer cancel()
	r.started(e, cancel)
	e.err = r.guarded(ctx, j)
	switch {
	case r.ended(e):
		e.with, e.reported, e.err = nil, nil, &Retry{After: abandonedRest, Free: true, Cause: errAbandoned}
	case e.err != nil && r.lifetime.Err() != nil:
		e.with, e.reported, e.err = nil, nil, &Retry{Free: true, Cause: fmt.Errorf("interrupted by shutdown: %w", e.err)}
	}
	return e
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
