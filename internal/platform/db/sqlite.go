package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// maxGroup is the largest number of functions in one commit.
const maxGroup = 256

const (
	// shareDelay is the time that the commit of a TxAsync function waits for others to share it. busyShareDelay
	// applies if there were more than busyWrites in the last tenth of a second. The more functions share a commit,
	// the fewer pages are written twice.
	shareDelay     = 3 * time.Millisecond
	busyShareDelay = 25 * time.Millisecond
	busyWrites     = 20
	// minCommitGap is the minimum time between two commits without fsync. It applies if there were more than relaxedBurst calls of
	// TxRelaxed in the last tenth of a second.
	minCommitGap = 4 * time.Millisecond
	relaxedBurst = 10
)

// ErrClosed is returned for work on a database that is being closed.
var ErrClosed = errors.New("database is closed")

// sqlite has one writing connection with group commit, and a pool of readers.
type sqlite struct {
	path     string
	read     *cached
	pool     *sql.DB // pool of the readers
	write    *sql.DB
	queue    chan *write
	idle     *idleTimer // parks the writer
	done     chan struct{}
	once     sync.Once
	stop     chan struct{}
	log      *writeLog
	unsynced chan []*write // committed groups that wait for the fsync
	last     time.Time     // time of the last commit; used by the writer only

	unsyncedGroups atomic.Int64 // number of groups that wait for the fsync
	asyncRate      rate         // rate of TxAsync
	relaxedRate    rate         // rate of TxRelaxed
	counters       changeCounters

	transactions, commits, commitTime atomic.Int64
}

// write is a function that waits for the writer.
type write struct {
	ctx        context.Context
	fn         func(*transaction) error
	tx         *transaction
	shareUntil time.Time   // deadline for sharing the commit; zero: see commitDeadline
	relaxed    bool        // finished after the commit, without the fsync
	repeatable bool        // may run more than once
	ended      func(error) // gets the result in the writer goroutine; or
	result     chan error  // receives the result
}

// dsn configures the connection. SQLite itself does not fsync at each commit; writeLog does it for the transactions
// that need it. The WAL is moved into the database every 16 MB, because the same pages are written repeatedly and
// then moved once.
func dsn(path string, writer bool) string {
	v := url.Values{}
	for _, p := range []string{"journal_mode(WAL)", "busy_timeout(5000)", "foreign_keys(1)",
		"temp_store(MEMORY)", "secure_delete(1)", "journal_size_limit(67108864)"} {
		v.Add("_pragma", p)
	}
	if writer {
		v.Add("_pragma", "cache_size(-32768)")
		v.Add("_pragma", "synchronous(NORMAL)")
		v.Add("_pragma", "wal_autocheckpoint(4000)")
		v.Set("_txlock", "immediate")
	} else {
		v.Add("_pragma", "synchronous(FULL)")
		v.Add("_pragma", "cache_size(-16384)")
		v.Add("_pragma", "query_only(1)")
	}
	return "file:" + url.PathEscape(path) + "?" + v.Encode()
}

func openSQLite(ctx context.Context, path string) (*sqlite, error) {
	w, err := sql.Open("sqlite", dsn(path, true))
	if err != nil {
		return nil, err
	}
	w.SetMaxOpenConns(1)
	conn, err := w.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	r, err := sql.Open("sqlite", dsn(path, false))
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	r.SetMaxOpenConns(readers())
	r.SetMaxIdleConns(readers())
	s := &sqlite{
		path: path, pool: r,
		read: newCached(r, r.PrepareContext, r.Close), write: w,
		queue: make(chan *write, 4*maxGroup), idle: newIdleTimer(), done: make(chan struct{}), stop: make(chan struct{}),
		log: newWriteLog(path), unsynced: make(chan []*write, maxUnsynced),
	}
	writer := newCached(conn, conn.PrepareContext, conn.Close)
	writer.written = &written{counters: &s.counters, dirty: map[*atomic.Uint64]struct{}{}}
	go s.run(writer)
	return s, nil
}

// readers returns the number of reading connections.
func readers() int { return max(4, runtime.NumCPU()) }

// shrink closes idle reading connections, and empties the writer's cache.
func (s *sqlite) shrink(ctx context.Context) error {
	s.pool.SetMaxIdleConns(0)
	s.pool.SetMaxIdleConns(readers())
	return s.tx(ctx, func(t *transaction) error {
		_, err := t.Exec(ctx, "PRAGMA shrink_memory")
		return err
	})
}

func (s *sqlite) forUpdate() string  { return "" }
func (s *sqlite) skipLocked() string { return "" }
func (s *sqlite) reader() Querier    { return s.read }

func (s *sqlite) stats() Stats {
	return Stats{s.transactions.Load(), s.commits.Load(), s.log.syncs.Load(), time.Duration(s.commitTime.Load())}
}

func (s *sqlite) close() error {
	s.once.Do(func() { close(s.stop) })
	<-s.done
	return errors.Join(s.log.close(), s.read.close(), s.write.Close())
}

func (s *sqlite) tx(ctx context.Context, fn func(*transaction) error) error {
	return s.do(&write{ctx: ctx, fn: fn})
}

func (s *sqlite) txAsync(ctx context.Context, fn func(*transaction) error) (wait func() error) {
	w := s.newAsync(ctx, fn)
	w.result = make(chan error, 1)
	s.enqueue(w)
	return w.await
}

func (s *sqlite) txAsyncThen(ctx context.Context, fn func(*transaction) error, ended func(error)) {
	w := s.newAsync(ctx, fn)
	w.ended = ended
	s.enqueue(w)
}

func (s *sqlite) newAsync(ctx context.Context, fn func(*transaction) error) *write {
	now, share := time.Now(), shareDelay
	if s.asyncRate.add(now) > busyWrites {
		share = busyShareDelay
	}
	return &write{ctx: ctx, fn: fn, shareUntil: now.Add(share), relaxed: true, repeatable: true}
}

func (s *sqlite) txRelaxed(ctx context.Context, fn func(*transaction) error) error {
	w := &write{ctx: ctx, fn: fn, relaxed: true}
	if now := time.Now(); s.relaxedRate.add(now) <= relaxedBurst {
		w.shareUntil = now
	}
	return s.do(w)
}

// do runs a function and returns its result.
func (s *sqlite) do(w *write) error {
	w.result = make(chan error, 1)
	s.enqueue(w)
	return w.await()
}

// enqueue adds a function to the queue. Every function gets exactly one result.
func (s *sqlite) enqueue(w *write) {
	select {
	case s.queue <- w:
	case <-w.ctx.Done():
		w.finish(w.ctx.Err())
		return
	case <-s.stop:
		w.finish(ErrClosed)
		return
	}
	by := w.shareUntil
	if len(s.queue) >= maxGroup {
		by = time.Time{}
	}
	s.idle.end(by)
	select {
	case <-s.done: // the writer has ended and does not see it
		s.refuse()
	default:
	}
}

// refuse returns ErrClosed to the functions that remain after the writer has ended.
func (s *sqlite) refuse() {
	for w := s.dequeue(); w != nil; w = s.dequeue() {
		w.finish(ErrClosed)
	}
}

func (w *write) await() error { return <-w.result }

// run is the writer goroutine. It owns the writing connection.
func (s *sqlite) run(conn *cached) {
	defer s.refuse()
	defer close(s.done)
	defer conn.close()
	told := make(chan struct{})
	go func() { defer close(told); s.syncLoop() }()
	defer func() { close(s.unsynced); <-told }()
	for {
		w, open := s.first()
		if !open {
			break
		}
		s.group(conn, s.collect(w))
	}
	for w := s.dequeue(); w != nil; w = s.dequeue() { // accepted functions still run after Close
		s.group(conn, []*write{w})
	}
}

// first waits for the first function of a transaction; open is false after Close.
func (s *sqlite) first() (w *write, open bool) {
	for {
		if w = s.dequeue(); w != nil {
			return w, true
		}
		if !s.idle.begin(time.Time{}, s.queued, s.stop) {
			return nil, false
		}
	}
}

// dequeue takes a function from the queue; nil if it is empty.
func (s *sqlite) dequeue() *write {
	select {
	case w := <-s.queue:
		return w
	default:
		return nil
	}
}

func (s *sqlite) queued() bool { return len(s.queue) > 0 }

// collect waits for more functions for the transaction of w while its commit may wait. They run together at the end,
// so that the row of a new call is merged with the changes that follow it.
func (s *sqlite) collect(w *write) (all []*write) {
	until := s.commitDeadline(w)
	for w != nil {
		all = append(all, w)
		if t := s.commitDeadline(w); t.Before(until) {
			until = t
		}
		if w = nil; len(all) < maxGroup {
			w = s.next(until)
		}
	}
	return all
}

// commitDeadline returns the time until which a commit may wait for others. A function that needs the fsync waits
// while the disk is busy with earlier ones. A relaxed function waits if there are many.
func (s *sqlite) commitDeadline(w *write) time.Time {
	if w.relaxed && w.shareUntil.IsZero() || !w.relaxed && s.unsyncedGroups.Load() > 0 {
		return s.last.Add(minCommitGap)
	}
	return w.shareUntil
}

// answer returns the results of the functions. Those that need the fsync get theirs from syncLoop, while the writer
// continues.
func (s *sqlite) answer(ran []*write, err error) {
	var rest []*write
	for _, w := range ran {
		if err == nil && !w.relaxed {
			rest = append(rest, w)
			continue
		}
		w.finish(err)
	}
	switch {
	case len(rest) > 0:
		s.unsyncedGroups.Add(1)
		s.unsynced <- rest
	case err == nil && len(ran) > 0:
		s.log.syncSoon()
	}
}

// maxUnsynced is the number of groups that wait for the fsync before the writer waits as well.
const maxUnsynced = 64

// syncLoop calls fsync for committed groups and returns the results in commit order. Groups that were committed
// during an fsync share the next one.
func (s *sqlite) syncLoop() {
	for first := range s.unsynced {
		groups := [][]*write{first}
		for more := true; more; {
			select {
			case g, open := <-s.unsynced:
				if more = open; open {
					groups = append(groups, g)
				}
			default:
				more = false
			}
		}
		err := s.log.sync()
		s.unsyncedGroups.Add(-int64(len(groups)))
		for _, g := range groups {
			for _, w := range g {
				w.finish(err)
			}
		}
	}
}

// finish runs the OnCommit functions and returns the result of a function.
func (w *write) finish(err error) {
	if err == nil {
		w.tx.committed()
	}
	if w.ended != nil {
		w.ended(err)
		return
	}
	w.result <- err
}

// next returns the next function for this transaction; nil if it has to be committed.
func (s *sqlite) next(until time.Time) *write {
	for {
		if w := s.dequeue(); w != nil || !time.Now().Before(until) {
			return w
		}
		if !s.idle.begin(until, s.queued, s.stop) {
			return nil
		}
	}
}

func (s *sqlite) commit(ctx context.Context, conn *cached) error {
	start := time.Now()
	if err := conn.run(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	conn.written.committed()
	s.last = time.Now()
	s.commits.Add(1)
	s.commitTime.Add(int64(s.last.Sub(start)))
	return nil
}
