package pbx

import "context"

// pendingInsert is the INSERT of a call's row that runs while the phones already ring.
type opening struct {
	sure    bool // the journal has the row: nothing waits for the commit
	done    chan struct{}
	err     error    // valid after done is closed
	waiting []func() // runs after the row is durable, such as 180 to the caller
}

// afterCommit defers f until the row is written.
func (o *opening) then(f func()) { o.waiting = append(o.waiting, f) }

// insertAsync writes the call's row while its phones ring. Neither 180 nor 200 is sent to the caller before the row
// is durable. Later writes of the call come after it. then runs when the write has finished.
func (c *liveCall) beginBeside(ctx context.Context, then func()) {
	c.began = true
	c.awaitTrying()
	settle, sure := c.sw.Records.SureBegin(c.new)
	o := &opening{sure: sure, done: make(chan struct{})}
	c.opening = o
	c.sw.running.Add(1)
	c.sw.Records.BeginLater(ctx, c.new, func(err error) {
		defer c.sw.running.Done()
		if o.err = err; err == nil {
			settle()
		}
		close(o.done)
		then()
		if err != nil || !sure { // otherwise nothing waits for the row
			c.inbox.push(message{run: func(context.Context) { c.opened(o) }})
		}
	})
}

// insertDone runs the deferred functions, or ends the call if its row could not be written.
func (c *liveCall) opened(o *opening) {
	if c.opening != o {
		return // waitInserted has already handled it
	}
	if !c.written() {
		c.unwritten()
		return
	}
	for _, f := range o.waiting {
		if !c.done {
			f()
		}
	}
}

// awaitingDurability reports whether responses to the caller are deferred because the row is not durable yet.
func (c *liveCall) awaited() bool { return c.opening != nil && !c.opening.sure }

// isDurable waits until the row is durable and reports whether it is.
func (c *liveCall) assured() bool { return !c.awaited() || c.written() }

// waitInserted waits for a pending INSERT of the call's row and reports whether the row was written. It returns true
// if none is pending.
func (c *liveCall) written() bool {
	o := c.opening
	if o == nil {
		return true
	}
	<-o.done
	c.opening = nil
	if o.err != nil {
		c.sw.Log.Error("call not written", "call", c.id, "org", c.new.Org, "err", o.err)
	}
	return o.err == nil
}
