package pbx

import (
	"context"

	"soniq/internal/telephony/pbx/writequeue"
)

// pendingInsert is the INSERT of a call's row that runs while the phones already ring.
type pendingInsert struct {
	durable  bool // the journal has the row: nothing waits for the commit
	done     chan struct{}
	err      error    // valid after done is closed
	deferred []func() // runs after the row is durable, such as 180 to the caller
}

// afterCommit defers f until the row is written.
func (o *pendingInsert) afterCommit(f func()) { o.deferred = append(o.deferred, f) }

// insertAsync writes the call's row while its phones ring. Neither 180 nor 200 is sent to the caller before the row
// is durable. Later writes of the call come after it. then runs when the write has finished.
func (c *liveCall) insertAsync(ctx context.Context, then func()) {
	c.began = true
	c.awaitTrying()
	settle, sure := c.sw.cfg.Journal.JournalBegin(c.new)
	o := &pendingInsert{durable: sure, done: make(chan struct{})}
	c.pendingInsert = o
	c.sw.running.Add(1)
	c.sw.cfg.Store.BeginAsync(ctx, c.new, func(err error) {
		defer c.sw.running.Done()
		if o.err = err; err == nil {
			settle()
		}
		c.inserted.Store(true)
		close(o.done)
		then()
		if err != nil || !sure { // otherwise nothing waits for the row
			c.inbox.Push(message{run: func(context.Context) { c.insertDone(o) }})
		}
	})
}

// insertDone runs the deferred functions, or ends the call if its row could not be written.
func (c *liveCall) insertDone(o *pendingInsert) {
	if c.pendingInsert != o {
		return // waitInserted has already handled it
	}
	if !c.waitInserted() {
		c.endNotWritten()
		return
	}
	for _, f := range o.deferred {
		if !c.done {
			f()
		}
	}
}

// awaitingDurability reports whether responses to the caller are deferred because the row is not durable yet.
func (c *liveCall) awaitingDurability() bool {
	return c.pendingInsert != nil && !c.pendingInsert.durable
}

// isDurable waits until the row is durable and reports whether it is.
func (c *liveCall) isDurable() bool { return !c.awaitingDurability() || c.waitInserted() }

// waitInserted waits for a pending INSERT of the call's row and reports whether the row was written. It returns true
// if none is pending.
func (c *liveCall) waitInserted() bool {
	o := c.pendingInsert
	if o == nil {
		return true
	}
	<-o.done
	c.pendingInsert = nil
	if o.err != nil {
		c.sw.cfg.Log.Error("call not written", "call", c.id, "org", c.new.Org, "err", o.err)
	}
	return o.err == nil
}

// AwaitInsert waits until the INSERT of a call's row has ended. It returns at once if no call with this id is in progress
// here. Phones learn the id of a call with the INVITE, and may ask for the call before its row is written.
func (s *Switch) AwaitInsert(ctx context.Context, org, id string) {
	if c := s.find(org, id); c != nil && !c.inserted.Load() {
		s.AwaitWrites(ctx, org, id)
	}
}

// AwaitWrites waits until everything that has happened in a call so far is written, or has failed to be written. It does
// not wait for an emergency call, and for no more than writequeue.WriteTimeout.
func (s *Switch) AwaitWrites(ctx context.Context, org, id string) {
	c := s.find(org, id)
	if c == nil || c.protected.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writequeue.WriteTimeout)
	defer cancel()
	written := make(chan struct{})
	finish := func(ctx context.Context) { c.finishWrites(ctx); close(written) }
	if !c.inbox.Push(message{run: finish, ifEnded: func() { close(written) }}) {
		return
	}
	select {
	case <-written:
	case <-ctx.Done():
	}
}

// finishWrites waits for the writes in progress.
func (c *liveCall) finishWrites(ctx context.Context) {
	if o := c.pendingInsert; o != nil {
		c.insertDone(o)
	}
	c.writes.FinishStarted(ctx)
}
