package db

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// group is a set of functions that share one transaction of SQLite.
//
// A savepoint copies every page that is changed after it, so not every function has one of its own. Consecutive
// functions that may be repeated share one savepoint, or need none at the start of the transaction. If one of them
// fails, all of them are undone and run again with a savepoint each.
type group struct {
	s       *sqlite
	conn    *cached
	ran     []*write // functions to commit
	open    int      // number of the last functions in ran that share a savepoint or have none
	saved   bool     // a shared savepoint is open
	flushed int      // number of functions in ran whose items are flushed
	batches int      // number of batches in ran, which are not functions of callers
}

// shared is the name of the shared savepoint.
const shared = "shared"

// group runs functions, and those that arrive meanwhile, in one transaction. Relaxed functions get their result after
// the commit, the others after the fsync.
func (s *sqlite) group(conn *cached, all []*write) {
	ctx := context.Background()
	if err := conn.run(ctx, "BEGIN IMMEDIATE"); err != nil {
		refuse(all, fmt.Errorf("begin: %w", err))
		return
	}
	g := &group{s: s, conn: conn}
	var err error
	for n := 0; n < len(all) && err == nil; n++ {
		if err = g.add(all[n]); err != nil {
			refuse(all[n+1:], err)
			break
		}
		if n == len(all)-1 && n < maxGroup {
			if w := s.next(time.Time{}); w != nil {
				all = append(all, w)
			}
		}
	}
	g.settle()
	if err == nil {
		err = g.write()
	}
	if err == nil {
		err = s.commit(ctx, conn)
	}
	if err != nil {
		_ = conn.run(ctx, "ROLLBACK")
	} else {
		s.transactions.Add(int64(len(g.ran) - g.batches))
	}
	s.answer(g.ran, err)
}

// refuse returns the error to functions that are not run.
func refuse(all []*write, err error) {
	for _, w := range all {
		w.finish(err)
	}
}

// add runs a function, and returns its error to the caller of Tx. It returns an error if the whole transaction is
// lost.
func (g *group) add(w *write) (broken error) {
	if err := w.ctx.Err(); err != nil {
		w.finish(err)
		return nil
	}
	if !w.repeatable {
		if err := g.close(); err != nil {
			w.finish(err)
			return err
		}
		return g.alone(w)
	}
	if err := g.begin(); err != nil {
		w.finish(err)
		return err
	}
	w.tx = &transaction{on: g.conn}
	if guarded(w.tx, w.fn) != nil {
		return g.rerunAlone(w)
	}
	g.ran = append(g.ran, w)
	g.open++
	return nil
}

// begin opens a shared savepoint for the next functions. The first function in the transaction needs none.
func (g *group) begin() error {
	if g.open > 0 || g.saved || len(g.ran) == 0 {
		return nil
	}
	g.saved = true
	return g.run("SAVEPOINT " + shared)
}

// close releases the shared savepoint: its functions can then only be undone with the whole transaction. It flushes
// the batched items, so that the next function sees them.
func (g *group) close() error {
	g.settle()
	if g.saved {
		g.saved = false
		if err := g.run("RELEASE " + shared); err != nil {
			return err
		}
	}
	return g.write()
}

// write flushes the items batched since the last call. Their OnCommit functions run after the fsync.
func (g *group) write() error {
	w := &write{ctx: context.Background(), tx: &transaction{on: g.conn}, result: make(chan error, 1)}
	for _, ran := range g.ran[g.flushed:] {
		w.tx.batched = append(w.tx.batched, ran.tx.batched...)
		ran.tx.batched = nil
	}
	g.flushed = len(g.ran)
	if len(w.tx.batched) == 0 {
		return nil
	}
	if err := w.tx.flush(w.ctx); err != nil {
		return brokenError{err}
	}
	g.ran = append(g.ran, w)
	g.flushed++
	g.batches++
	return nil
}

// settle drops the closures of functions that will not run again, so that a late waiter does not keep their data in
// memory.
func (g *group) settle() {
	for _, w := range g.ran[len(g.ran)-g.open:] {
		w.fn = nil
	}
	g.open = 0
}

// rerunAlone undoes the functions in the savepoint of the failed w, and runs each of them alone.
func (g *group) rerunAlone(w *write) (broken error) {
	if err := g.undo(); err != nil {
		w.finish(err)
		return err
	}
	first := len(g.ran) - g.open
	all := append(g.ran[first:len(g.ran):len(g.ran)], w)
	g.ran, g.open = g.ran[:first:first], 0
	for i, w := range all {
		if err := g.alone(w); err != nil {
			for _, rest := range all[i+1:] {
				rest.finish(err)
			}
			return err
		}
	}
	return nil
}

func (g *group) undo() error {
	if g.saved {
		g.saved = false
		return errors.Join(g.run("ROLLBACK TO "+shared), g.run("RELEASE "+shared))
	}
	_ = g.run("ROLLBACK") // fails if the error has already ended the transaction
	return g.run("BEGIN IMMEDIATE")
}

// alone runs a function in a savepoint of its own.
func (g *group) alone(w *write) (broken error) {
	w.tx = &transaction{on: g.conn}
	run := w.tx.nested
	if len(g.ran) == 0 {
		run = w.tx.first
	}
	fn := w.fn
	w.fn = nil
	err := run(w.ctx, fn)
	if err == nil {
		g.ran = append(g.ran, w)
		return nil
	}
	w.finish(err)
	if errors.As(err, &brokenError{}) {
		return err
	}
	return nil
}

func (g *group) run(text string) error {
	if err := g.conn.run(context.Background(), text); err != nil {
		return brokenError{err}
	}
	return nil
}
