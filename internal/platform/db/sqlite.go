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

// maxGroup is how many functions share one commit at most.
const maxGroup = 256

const (
	// patience is how long the commit of a function given to Later waits for others to share it with, and longPatience how long where
	// more than busyWrites were given in the last tenth of a second: the more share a commit, the fewer pages are written twice.
	patience     = 3 * time.Millisecond
	longPatience = 25 * time.Millisecond
	busyWrites   = 20
	// gather is the least time between two commits of which nobody waits for the disk, where more than fewSwift were given to Swift in the
	// last tenth of a second.
	gather   = 4 * time.Millisecond
	fewSwift = 10
)

// ErrClosed is returned for work given to a database that is being closed.
var ErrClosed = errors.New("database is closed")

// sqlite is one writing connection with group commit, and a pool of readers.
type sqlite struct {
	path  string
	read  *cached
	pool  *sql.DB // what it reads with
	write *sql.DB
	queue chan *write
	sleep *sleep // of the writer
	done  chan struct{}
	once  sync.Once
	stop  chan struct{}
	log   *writeLog
	sure  chan []*write // committed, and to be told when the disk has it
	last  time.Time     // of the writer's commits; used by it alone

	unsure atomic.Int64 // groups that wait for the disk
	rate   rate         // of what is given to Later
	hurry  rate         // of what is given to Swift
	marks  marks

	transactions, commits, commitTime atomic.Int64
}

// write is a function waiting for the writer.
type write struct {
	ctx    context.Context
	fn     func(*transaction) error
	tx     *transaction
	until  time.Time   // its commit may wait for others until then; zero: as mayWait says
	swift  bool        // it is done once it is committed, though the disk has it later
	again  bool        // it may be run more than once
	ended  func(error) // told what became of it, by the writer; or
	result chan error  // what became of it
}

// dsn has the writer not wait for the disk at each commit: it waits itself, for those who need it (writeLog). The log is moved into the
// database every 16 MB: the same pages are written again and again, and moved once.
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
		queue: make(chan *write, 4*maxGroup), sleep: newSleep(), done: make(chan struct{}), stop: make(chan struct{}),
		log: newWriteLog(path), sure: make(chan []*write, maxUnsure),
	}
	writer := newCached(conn, conn.PrepareContext, conn.Close)
	writer.written = &written{marks: &s.marks, dirty: map[*atomic.Uint64]struct{}{}}
	go s.run(writer)
	return s, nil
}

// readers is how many connections read at a time.
func readers() int { return max(4, runtime.NumCPU()) }

// shrink closes connections that nobody reads with, and empties the writer's cache.
func (s *sqlite) shrink(ctx context.Context) error {
	s.pool.SetMaxIdleConns(0)
	s.pool.SetMaxIdleConns(readers())
	return s.tx(ctx, func(t *transaction) error {
		_, err := t.Exec(ctx, "PRAGMA shrink_memory")
		return err
	})
}

func (s *sqlite) forUpdate() string              { return "" }
func (s *sqlite) skipLocked() string             { return "" }
func (s *sqlite) reader() Querier                { return s.read }
func (s *sqlite) ping(ctx context.Context) error { return s.write1(ctx) }

// write1 proves that the writer lives by running an empty function through it.
func (s *sqlite) write1(ctx context.Context) error {
	return s.tx(ctx, func(t *transaction) error {
		var one int
		return t.QueryRow(ctx, "SELECT 1").Scan(&one)
	})
}

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

func (s *sqlite) later(ctx context.Context, fn func(*transaction) error) (wait func() error) {
	w := s.mayShare(ctx, fn)
	w.result = make(chan error, 1)
	s.give(w)
	return w.await
}

func (s *sqlite) laterThen(ctx context.Context, fn func(*transaction) error, ended func(error)) {
	w := s.mayShare(ctx, fn)
	w.ended = ended
	s.give(w)
}

func (s *sqlite) mayShare(ctx context.Context, fn func(*transaction) error) *write {
	now, share := time.Now(), patience
	if s.rate.add(now) > busyWrites {
		share = longPatience
	}
	return &write{ctx: ctx, fn: fn, until: now.Add(share), swift: true, again: true}
}

func (s *sqlite) swift(ctx context.Context, fn func(*transaction) error) error {
	w := &write{ctx: ctx, fn: fn, swift: true}
	if now := time.Now(); s.hurry.add(now) <= fewSwift {
		w.until = now
	}
	return s.do(w)
}

// do has a function run, and returns what became of it.
func (s *sqlite) do(w *write) error {
	w.result = make(chan error, 1)
	s.give(w)
	return w.await()
}

// give puts a function into the queue. What is given is ended once, whatever happens.
func (s *sqlite) give(w *write) {
	select {
	case s.queue <- w:
	case <-w.ctx.Done():
		w.end(w.ctx.Err())
		return
	case <-s.stop:
		w.end(ErrClosed)
		return
	}
	by := w.until
	if len(s.queue) >= maxGroup {
		by = time.Time{}
	}
	s.sleep.end(by)
	select {
	case <-s.done: // the writer does not see it any more
		s.refuse()
	default:
	}
}

// refuse ends what is left in the queue when the writer is gone.
func (s *sqlite) refuse() {
	for w := s.waiting(); w != nil; w = s.waiting() {
		w.end(ErrClosed)
	}
}

func (w *write) await() error { return <-w.result }

// run is the one writer: it owns the writing connection.
func (s *sqlite) run(conn *cached) {
	defer s.refuse()
	defer close(s.done)
	defer conn.close()
	told := make(chan struct{})
	go func() { defer close(told); s.tellSure() }()
	defer func() { close(s.sure); <-told }()
	for {
		w, open := s.first()
		if !open {
			break
		}
		s.group(conn, s.collect(w))
	}
	for w := s.waiting(); w != nil; w = s.waiting() { // what was accepted before the close is still done
		s.group(conn, []*write{w})
	}
}

// first waits for what begins a transaction; open is false once the database is being closed.
func (s *sqlite) first() (w *write, open bool) {
	for {
		if w = s.waiting(); w != nil {
			return w, true
		}
		if !s.sleep.begin(time.Time{}, s.queued, s.stop) {
			return nil, false
		}
	}
}

// waiting takes a function from the queue; nil where none is there.
func (s *sqlite) waiting() *write {
	select {
	case w := <-s.queue:
		return w
	default:
		return nil
	}
}

func (s *sqlite) queued() bool { return len(s.queue) > 0 }

// collect waits for what else is to be done in the transaction of w, while nobody waits for the commit. It is run together and not as it
// comes: a call that begins is written with what it comes to meanwhile.
func (s *sqlite) collect(w *write) (all []*write) {
	until := s.mayWait(w)
	for w != nil {
		all = append(all, w)
		if t := s.mayWait(w); t.Before(until) {
			until = t
		}
		if w = nil; len(all) < maxGroup {
			w = s.next(until)
		}
	}
	return all
}

// mayWait is until when the commit of a function may wait for others: of one that waits for the disk, while the disk is busy with
// those before it; of one that is swift, where many are.
func (s *sqlite) mayWait(w *write) time.Time {
	if w.swift && w.until.IsZero() || !w.swift && s.unsure.Load() > 0 {
		return s.last.Add(gather)
	}
	return w.until
}

// answer tells those whose functions ran what became of them; those who wait for the disk are told by tellSure, while the writer goes
// on.
func (s *sqlite) answer(ran []*write, err error) {
	var rest []*write
	for _, w := range ran {
		if err == nil && !w.swift {
			rest = append(rest, w)
			continue
		}
		w.end(err)
	}
	switch {
	case len(rest) > 0:
		s.unsure.Add(1)
		s.sure <- rest
	case err == nil && len(ran) > 0:
		s.log.syncSoon()
	}
}

// maxUnsure is how many groups wait for the disk before the writer waits, too.
const maxUnsure = 64

// tellSure brings what was committed to the disk, and tells those who wait for that, in the order of their commits. Groups that were
// committed while the disk was busy share the next time.
func (s *sqlite) tellSure() {
	for first := range s.sure {
		groups := [][]*write{first}
		for more := true; more; {
			select {
			case g, open := <-s.sure:
				if more = open; open {
					groups = append(groups, g)
				}
			default:
				more = false
			}
		}
		err := s.log.sync()
		s.unsure.Add(-int64(len(groups)))
		for _, g := range groups {
			for _, w := range g {
				w.end(err)
			}
		}
	}
}

// end tells the one who waits what became of a function.
func (w *write) end(err error) {
	if err == nil {
		w.tx.committed()
	}
	if w.ended != nil {
		w.ended(err)
		return
	}
	w.result <- err
}

// next is what else is to be done in this transaction; nil where it is to be committed.
func (s *sqlite) next(until time.Time) *write {
	for {
		if w := s.waiting(); w != nil || !time.Now().Before(until) {
			return w
		}
		if !s.sleep.begin(until, s.queued, s.stop) {
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
