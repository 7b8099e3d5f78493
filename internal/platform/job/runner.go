package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
)

// Handler runs one job. nil ends the job. Retry sets the next attempt. ErrDead gives up. Any other error is tried
// again with growing delay.
type Handler func(ctx context.Context, j Job) error

// Options are the settings of a queue.
type Options struct {
	Workers int           // concurrent jobs
	PerLane int           // concurrent jobs per lane; 0: no limit
	PerOrg  int           // concurrent jobs per organisation; 0: three quarters of Workers, so that one organisation cannot hold all
	Timeout time.Duration // limit of one job; also the lease
	// Pace is the shortest time between two looks for jobs. In a busy queue without latency requirements, one look
	// then claims many jobs.
	Pace time.Duration
	// LaneLimit reduces PerLane for single lanes; may be nil. It must not block.
	LaneLimit func(lane string) int
	// Record writes the values of Report in the transaction that ends their jobs, many at a time. If it fails, it is
	// called again for each job alone. Jobs whose report fails again are tried again.
	Record func(ctx context.Context, tx db.Querier, reports []any) error
}

// Runner claims and runs the jobs of one queue.
type Runner struct {
	DB      *db.DB
	Queue   *Queue
	Name    string // name of the queue
	Node    string // worker name in claims; unique per runner of a queue
	Log     *slog.Logger
	Options Options

	handlers map[string]Handler
	turns    turns // owned by the loop

	cancel   context.CancelFunc // stops claiming
	abort    context.CancelFunc // cancels running jobs
	lifetime context.Context    // context of running jobs
	stopped  chan struct{}      // closed when the loop has returned
	finished chan struct{}      // signals that a job has ended since the last look
	ends     chan *jobEnd
	running  sync.WaitGroup
	writing  sync.WaitGroup

	claimLost bool // the response to a claim was lost; owned by the loop

	mu    sync.Mutex // guards the fields below
	works map[*jobEnd]*work
	busy  int
	lanes map[string]int // running jobs
	orgs  map[string]int // running jobs
	mine  map[string]int // jobs without a written result; 2 if a job is claimed again at that moment
}

// Handle sets the handler of a kind of job. Call it before Start.
func (r *Runner) Handle(kind string, h Handler) {
	if r.handlers == nil {
		r.handlers = map[string]Handler{}
	}
	r.handlers[kind] = h
}

// poll is the interval of looks for jobs that other nodes wrote, and for expired leases. It is also the delay after a claim that failed or
// left due jobs. idle is the delay if no job is known.
const (
	poll = time.Second
	idle = time.Hour
)

// Start makes jobs ready again that this node was running when it died, and starts the runner.
func (r *Runner) Start(ctx context.Context) error {
	if err := errors.Join(r.recover(ctx), expire(ctx, r.DB, r.Queue.now())); err != nil {
		return fmt.Errorf("recover jobs of %s: %w", r.Name, err)
	}
	r.Queue.ahead.add(r.Name)
	r.lanes, r.orgs, r.mine = map[string]int{}, map[string]int{}, map[string]int{}
	r.finished, r.stopped, r.ends = make(chan struct{}, 1), make(chan struct{}), make(chan *jobEnd)
	ctx = context.WithoutCancel(ctx)
	r.lifetime, r.abort = context.WithCancel(ctx)
	ctx, r.cancel = context.WithCancel(ctx)
	for range writers {
		r.writing.Go(func() { r.write(r.ends) })
	}
	go r.loop(ctx)
	return nil
}

// Stop stops claiming and waits for the running jobs. When ctx ends, they are cancelled. It returns after the last
// result is written.
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

// countLost counts the claims in succession that failed because the database was unavailable.
func countLost(before int, err error) int {
	if err != nil && db.IsUnavailable(err) {
		return before + 1
	}
	return 0
}

// claimLevel returns the log level of a failed claim. A single lost connection is a warning, because the next claim opens another.
func claimLevel(lost int) slog.Level {
	if lost == 1 {
		return slog.LevelWarn
	}
	return slog.LevelError
}

func (r *Runner) loop(ctx context.Context) {
	defer close(r.stopped)
	wake := r.Queue.Bus.Subscribe(wakeSubject(r.Name), 1)
	defer wake.Close()
	timer := time.NewTimer(poll)
	defer timer.Stop()
	lost := 0 // claims in succession for which the database was unavailable
	for {
		looked := time.Now()
		n, next, err := r.claimAndRun(ctx)
		r.claimLost = r.claimLost || db.IsUnavailable(err)
		if r.claimLost && err == nil {
			err = r.disown(ctx)
			r.claimLost = err != nil
		}
		if lost = countLost(lost, err); err != nil && ctx.Err() == nil {
			r.Log.Log(ctx, claimLevel(lost), "jobs not claimed", "queue", r.Name, "err", err)
		}
		if n > 0 && err == nil && r.waitPace(ctx, looked) {
			continue
		}
		if !r.wait(ctx, wake.C, timer, looked.Add(next)) || !r.waitPace(ctx, looked) {
			return
		}
	}
}

// wait waits until the queue may have a job to claim: after a wake-up, after a job ended, when the job that is due next is due, and when
// the database has a due job that another node wrote. It returns false if ctx has ended.
func (r *Runner) wait(ctx context.Context, wake <-chan any, timer *time.Timer, due time.Time) bool {
	for {
		timer.Reset(min(max(time.Until(due), time.Millisecond), clock.Until(poll)))
		select {
		case <-ctx.Done():
			return false
		case <-wake:
			return true
		case <-r.finished:
			return true
		case <-timer.C:
		}
		now := r.Queue.now()
		first, err := r.Queue.ahead.next(ctx, r.DB, r.Name, now)
		switch {
		case err != nil: // the claim reports it
			return ctx.Err() == nil
		case !time.Now().Before(due), !first.IsZero() && !first.After(now):
			return true
		case !first.IsZero():
			due = earlier(due, time.Now().Add(first.Sub(now)))
		}
	}
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// waitPace waits until the next look. It returns false if ctx has ended.
func (r *Runner) waitPace(ctx context.Context, looked time.Time) bool {
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

// claimAndRun claims jobs for the free workers and starts them. It returns their number, and the time until the next
// look.
func (r *Runner) claimAndRun(ctx context.Context) (int, time.Duration, error) {
	free := r.free()
	if free == 0 {
		return 0, idle, nil
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

// capacity returns the number of additional jobs that a lane may run.
func (r *Runner) capacity(lane string) int {
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

// orgCapacity returns the number of additional jobs that an organisation may run.
func (r *Runner) orgCapacity(org string) int {
	most := r.Options.PerOrg
	if most == 0 {
		most = max(1, r.Options.Workers-max(1, r.Options.Workers/4))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return most - r.orgs[org]
}

func (r *Runner) begin(j Job) {
	r.mu.Lock()
	r.busy++
	r.orgs[j.Org]++
	r.lanes[j.Lane]++
	r.mine[j.ID]++
	r.mu.Unlock()
	r.running.Go(func() {
		e := r.do(j)
		r.leave(j)
		r.look()
		r.ends <- e
		<-e.written
		r.releaseJob(j)
		r.look()
	})
}

// releaseJob removes a job whose result is written.
func (r *Runner) releaseJob(j Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mine[j.ID]--; r.mine[j.ID] == 0 {
		delete(r.mine, j.ID)
	}
}

// leave frees the worker. The unwritten result of the job only blocks jobs with its order key.
func (r *Runner) leave(j Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
	if r.orgs[j.Org]--; r.orgs[j.Org] == 0 {
		delete(r.orgs, j.Org)
	}
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

// do runs the handler. The start of a shutdown does not cancel it.
func (r *Runner) do(j Job) *jobEnd {
	e := &jobEnd{job: j, written: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.WithValue(r.lifetime, jobEndKey{}, e), r.Options.Timeout)
	defer cancel()
	r.started(e, cancel)
	e.err = r.guarded(ctx, j)
	switch {
	case r.ended(e):
		e.with, e.reported, e.err = nil, nil, &Retry{After: abandonedRest, NotCounted: true, Cause: errAbandoned}
	case e.err != nil && r.lifetime.Err() != nil:
		e.with, e.reported, e.err = nil, nil, &Retry{NotCounted: true, Cause: fmt.Errorf("interrupted by shutdown: %w", e.err)}
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
