package media

import (
	"sync"
	"time"
)

const (
	// pauseTime is how long a leg may be quiet before it counts as silence: phones
	// that suppress it send comfort noise more often.
	pauseTime = int64(2 * time.Second)
	// oneWayTime is how long media may flow in one direction only.
	oneWayTime = int64(5 * time.Second)
)

// quiet follows the times in which a leg could send and does not. in.mu guards it.
type quiet struct {
	since  int64 // the last packet, or when sending was agreed on
	total  int64
	open   bool // sending is agreed on
	oneWay bool
}

// direct notes whether the other side may send.
func (q *quiet) direct(s *Stream, may bool, now int64) {
	switch {
	case q.open && !may:
		q.end(s, now)
	case !q.open && may:
		q.since = now
	}
	q.open = may
}

// end is called for each packet accepted.
func (q *quiet) end(s *Stream, now int64) {
	if q.open && now-q.since > pauseTime {
		q.total, q.oneWay = q.until(s, now)
	}
	q.since = now
}

// until is total and oneWay if the silence under way ended now.
func (q *quiet) until(s *Stream, now int64) (total int64, oneWay bool) {
	gap := now - q.since
	if !q.open || gap <= pauseTime {
		return q.total, q.oneWay
	}
	s.out.mu.Lock()
	sent := s.out.started && s.out.at-q.since >= oneWayTime
	s.out.mu.Unlock()
	return q.total + gap, q.oneWay || sent
}

// A watch calls a function once per silence of a leg.
type watch struct {
	s     *Stream
	after int64
	f     func()
	wg    sync.WaitGroup // of the timer's function

	mu      sync.Mutex // guards the rest
	timer   *time.Timer
	stopped bool
	begun   int64
	told    int64 // when the silence that was told of began
}

// OnSilence calls f once whenever no RTP of the leg was accepted for the time
// given although it may send: packets of strangers, or that its key does not
// prove, do not count. Time on hold does not either. f runs in a goroutine of
// its own and must neither wait for long, nor Close the stream, nor call OnSilence.
// nil stops it.
func (s *Stream) OnSilence(after time.Duration, f func()) {
	var w *watch
	if f != nil && after > 0 {
		w = &watch{s: s, after: int64(after), f: f, begun: s.engine.clock()}
	}
	s.mu.Lock()
	if s.closed {
		w = nil
	}
	old := s.watch
	s.watch = w
	s.mu.Unlock()
	old.stop()
	if w != nil {
		w.arm(w.after)
	}
}

func (w *watch) arm(in int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.wg.Add(1)
	w.timer = time.AfterFunc(time.Duration(in), w.look)
}

func (w *watch) look() {
	defer w.wg.Done()
	due, silent := w.judge(w.s.engine.clock())
	if silent {
		w.f()
	}
	w.arm(due)
}

// judge returns when to look again, and whether a silence has lasted long enough
// that was not told of yet.
func (w *watch) judge(now int64) (due int64, silent bool) {
	w.s.in.mu.Lock()
	open, since := w.s.in.quiet.open, max(w.s.in.quiet.since, w.begun)
	w.s.in.mu.Unlock()
	left := since + w.after - now
	if !open || left > 0 {
		return max(left, w.after/10, int64(time.Millisecond)), false
	}
	silent = w.told != since
	w.told = since
	return w.after, silent
}

// stop ends the watch and waits for its function.
func (w *watch) stop() {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.stopped = true
	if w.timer != nil && w.timer.Stop() {
		w.wg.Done()
	}
	w.mu.Unlock()
	w.wg.Wait()
}
