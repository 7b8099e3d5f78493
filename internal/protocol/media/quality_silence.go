package media

import (
	"sync"
	"time"
)

const (
	// silenceThreshold is the time without packets that counts as silence. Phones with silence suppression send comfort
	// noise more often.
	silenceThreshold = int64(2 * time.Second)
	// oneWayThreshold is the time without packets, while media is sent, that counts as one-way audio.
	oneWayThreshold = int64(5 * time.Second)
)

// silenceDetector measures the times in which a leg may send and does not. in.mu guards it.
type silenceDetector struct {
	lastPacket int64 // arrival of the last packet, or when sending was agreed on
	total      int64
	expected   bool // the leg may send
	oneWay     bool
}

// setDirection records whether the other side may send.
func (q *silenceDetector) setDirection(s *Stream, may bool, now int64) {
	switch {
	case q.expected && !may:
		q.packetAccepted(s, now)
	case !q.expected && may:
		q.lastPacket = now
	}
	q.expected = may
}

// packetAccepted is called for each accepted packet and ends a silence.
func (q *silenceDetector) packetAccepted(s *Stream, now int64) {
	if q.expected && now-q.lastPacket > silenceThreshold {
		q.total, q.oneWay = q.totals(s, now)
	}
	q.lastPacket = now
}

// totals returns total and oneWay as if the current silence ended now.
func (q *silenceDetector) totals(s *Stream, now int64) (total int64, oneWay bool) {
	gap := now - q.lastPacket
	if !q.expected || gap <= silenceThreshold {
		return q.total, q.oneWay
	}
	s.out.mu.Lock()
	sent := s.out.started && s.out.sentAt-q.lastPacket >= oneWayThreshold
	s.out.mu.Unlock()
	return q.total + gap, q.oneWay || sent
}

// A silenceWatch calls a function once per silence of a leg.
type silenceWatch struct {
	s     *Stream
	after int64
	f     func()
	wg    sync.WaitGroup // runs of the timer's function

	mu            sync.Mutex // guards the fields below
	timer         *time.Timer
	stopped       bool
	started       int64
	reportedStart int64 // start of the last reported silence
}

// OnSilence calls f once whenever no RTP of the leg was accepted for the given time although the leg may send.
// Packets of other sources or without valid authentication do not count, and neither does time on hold. f runs on a
// goroutine of its own. It must not block for long, close the stream or call OnSilence. A nil f ends the calls.
func (s *Stream) OnSilence(after time.Duration, f func()) {
	var w *silenceWatch
	if f != nil && after > 0 {
		w = &silenceWatch{s: s, after: int64(after), f: f, started: s.engine.clock()}
	}
	s.mu.Lock()
	if s.closed {
		w = nil
	}
	old := s.silenceWatch
	s.silenceWatch = w
	s.mu.Unlock()
	old.stop()
	if w != nil {
		w.arm(w.after)
	}
}

func (w *silenceWatch) arm(in int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.wg.Add(1)
	w.timer = time.AfterFunc(time.Duration(in), w.check)
}

func (w *silenceWatch) check() {
	defer w.wg.Done()
	due, silent := w.evaluate(w.s.engine.clock())
	if silent {
		w.f()
	}
	w.arm(due)
}

// evaluate returns the time until the next check, and whether a silence lasted long enough that was not reported yet.
func (w *silenceWatch) evaluate(now int64) (due int64, silent bool) {
	w.s.in.mu.Lock()
	open, since := w.s.in.silence.expected, max(w.s.in.silence.lastPacket, w.started)
	w.s.in.mu.Unlock()
	left := since + w.after - now
	if !open || left > 0 {
		return max(left, w.after/10, int64(time.Millisecond)), false
	}
	silent = w.reportedStart != since
	w.reportedStart = since
	return w.after, silent
}

// stop ends the watch and waits for its function. A nil watch does nothing.
func (w *silenceWatch) stop() {
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
