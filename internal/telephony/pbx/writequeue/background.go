package writequeue

import (
	"context"
	"sync"
	"time"
)

// background performs the writes of a queue on a goroutine of its own. The goroutine runs while there is something to
// write.
type background struct {
	queue Queue         // owned by the goroutine
	stop  chan struct{} // closed when writes are not tried any more

	mu      sync.Mutex // guards the fields below
	waiting []pendingWrite
	idle    chan struct{} // closed when the goroutine ends; nil if none runs
}

// Background makes the later writes run on a goroutine of their own, in order. Write, StartWrite and FinishStarted do
// not wait any more; only Drain does. An emergency call uses it, so that a database that does not answer cannot delay
// the call.
func (l *Queue) Background() {
	if l.background != nil {
		return
	}
	b := &background{queue: New(l.log, l.callID), stop: make(chan struct{})}
	for _, f := range l.pending {
		b.add(f)
	}
	for _, f := range l.started {
		b.add(f.waitingFirst())
	}
	l.pending, l.started, l.background = nil, nil, b
}

// waitingFirst returns a write in progress as one whose first try waits for the result.
func (f pendingWrite) waitingFirst() pendingWrite {
	wait, again := f.wait, f.write
	f.wait = nil
	f.write = func(ctx context.Context) error {
		if first := wait; first != nil {
			wait = nil
			return first()
		}
		return again(ctx)
	}
	return f
}

func (b *background) add(f pendingWrite) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, f)
	if b.idle == nil {
		b.idle = make(chan struct{})
		go b.run()
	}
}

// take moves the waiting writes to the queue of the goroutine. It returns false, and ends the goroutine, if there are
// none.
func (b *background) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		close(b.idle)
		b.idle = nil
		return false
	}
	b.queue.pending, b.waiting = append(b.queue.pending, b.waiting...), nil
	return true
}

func (b *background) run() {
	for b.take() {
		b.write()
	}
}

// write performs the writes taken, and tries failed ones again until it is stopped.
func (b *background) write() {
	wait := firstRetry
	for !b.queue.flush(context.Background()) {
		select {
		case <-b.stop:
			b.queue.logAbandoned()
			b.queue.pending = nil
			return
		case <-time.After(wait):
			wait = min(2*wait, LastRetry)
		}
	}
}

// drain returns when all writes have succeeded, or when ctx ends.
func (b *background) drain(ctx context.Context) {
	b.mu.Lock()
	idle := b.idle
	b.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
		close(b.stop)
		<-idle
	}
}
