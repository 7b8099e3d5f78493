package record

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Recorders holds the few goroutines that serve all recorders of an engine. Some move audio from rings to files,
// one syncs the files. Without recorders they sleep. It is safe for concurrent use.
type Recorders struct {
	clock      func() int64 // ns
	log        *slog.Logger
	quit       chan struct{}
	wg         sync.WaitGroup
	drainTurns [drainers]drainTurns
	wake       chan struct{} // for the syncer

	mu      sync.Mutex // guards closed, placeOf and next
	closed  bool
	placeOf map[*Recorder]int // index of the drainer and its turn
	next    int

	recorded, failed atomic.Uint64
}

const (
	drainers     = 2
	turnCount    = 8
	drainEvery   = 250 * time.Millisecond // each recorder; an eighth of them at a time
	syncEvery    = time.Second
	syncEachUpTo = 8 // files; if more are dirty, the whole file system is synced at once
)

// drainTurns holds one drainer's recorders, spread over the interval so that they do not all write at once.
type drainTurns struct {
	wake chan struct{}
	mu   sync.Mutex // guards list
	list [turnCount][]*Recorder
}

// NewRecorders starts the goroutines. clock returns the time of arrival of packets, in ns. The caller must call Close.
func NewRecorders(clock func() int64, log *slog.Logger) *Recorders {
	w := &Recorders{clock: clock, log: log, quit: make(chan struct{}), wake: make(chan struct{}, 1), placeOf: map[*Recorder]int{}}
	for i := range w.drainTurns {
		w.drainTurns[i].wake = make(chan struct{}, 1)
		w.wg.Add(1)
		go w.drain(&w.drainTurns[i])
	}
	w.wg.Add(1)
	go w.sync()
	return w
}

// add assigns a recorder to a drainer. It returns false if the engine is closed.
func (w *Recorders) add(r *Recorder) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	place := w.next % (drainers * turnCount)
	w.next++
	w.placeOf[r] = place
	t := &w.drainTurns[place%drainers]
	t.mu.Lock()
	t.list[place/drainers] = append(t.list[place/drainers], r)
	t.mu.Unlock()
	signal(t.wake)
	signal(w.wake)
	return true
}

func (w *Recorders) remove(r *Recorder) {
	w.mu.Lock()
	place, ok := w.placeOf[r]
	delete(w.placeOf, r)
	w.mu.Unlock()
	if !ok {
		return
	}
	t := &w.drainTurns[place%drainers]
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.list[place/drainers]
	for i, o := range list {
		if o == r {
			last := len(list) - 1
			list[i], list[last] = list[last], nil
			t.list[place/drainers] = list[:last]
			return
		}
	}
}

// Running returns the number of recorders that are not closed.
func (w *Recorders) Running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.placeOf)
}

// drain serves one turn after the other, and sleeps while there are no recorders.
func (w *Recorders) drain(t *drainTurns) {
	defer w.wg.Done()
	tick := time.NewTicker(drainEvery / turnCount)
	tick.Stop()
	scratch := make([]byte, flushScratch)
	var list []*Recorder
	for turn, idle := 0, 0; ; turn = (turn + 1) % turnCount {
		select {
		case <-w.quit:
			return
		case <-t.wake:
			tick.Reset(drainEvery / turnCount)
			idle = 0 // until every turn was served
		case <-tick.C:
		}
		t.mu.Lock()
		list = append(list[:0], t.list[turn]...)
		t.mu.Unlock()
		for _, r := range list {
			r.drain(scratch)
		}
		idle++
		if len(list) > 0 {
			idle = 0
		}
		clear(list)
		if idle > turnCount {
			tick.Stop()
		}
	}
}

// sync makes written audio durable, once a second.
func (w *Recorders) sync() {
	defer w.wg.Done()
	tick := time.NewTicker(syncEvery)
	tick.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-w.wake:
			tick.Reset(syncEvery)
			continue
		case <-tick.C:
		}
		if w.syncDirty() == 0 {
			tick.Stop()
		}
	}
}

// syncDirty syncs the files with new audio and returns the number of running recorders.
func (w *Recorders) syncDirty() int {
	w.mu.Lock()
	n := len(w.placeOf)
	dirty := make([]*Recorder, 0, n)
	for r := range w.placeOf {
		if r.dirty.Swap(false) {
			dirty = append(dirty, r)
		}
	}
	w.mu.Unlock()
	if len(dirty) <= syncEachUpTo {
		for _, r := range dirty {
			w.reportSync(r, syncData(r.file))
		}
		return n
	}
	done := map[uint64]error{}
	for _, r := range dirty {
		err, ok := done[r.device]
		if !ok {
			err = syncDevice(r.file)
			done[r.device] = err
		}
		w.reportSync(r, err)
	}
	return n
}

func (w *Recorders) reportSync(r *Recorder, err error) {
	if err == nil || os.IsNotExist(err) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.fail(err)
	}
}

// Recorded returns the number of recordings finished.
func (w *Recorders) Recorded() uint64 { return w.recorded.Load() }

// Failed returns the number of recordings that could not be started, stopped with an error, or could not be finished.
func (w *Recorders) Failed() uint64 { return w.failed.Load() }

// Close finishes all open recorders and ends the goroutines.
func (w *Recorders) Close() {
	w.mu.Lock()
	w.closed = true
	left := make([]*Recorder, 0, len(w.placeOf))
	for r := range w.placeOf {
		left = append(left, r)
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, r := range left {
		if _, err := r.Close(ctx); err != nil {
			w.log.Error("finish recording at shutdown", "path", r.cfg.Path, "error", err)
		}
	}
	close(w.quit)
	w.wg.Wait()
}

// signal wakes the goroutine that waits for c, now or when it next waits.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
