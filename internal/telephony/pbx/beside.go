package pbx

import "context"

// An opening is the writing of a call's row while its phones ring already.
type opening struct {
	sure    bool // before it is written: nobody waits for it
	done    chan struct{}
	err     error    // valid once done is closed
	waiting []func() // what the caller is not told before
}

// then keeps something for when the row is written.
func (o *opening) then(f func()) { o.waiting = append(o.waiting, f) }

// beginBeside writes the call's row while its phones ring. Nobody is told anything of the call before it is sure that it will be written:
// neither that it rings, nor that it is answered. What else is written of the call comes after it. then is called once it is written.
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
		if err != nil || !sure { // else nobody waits for it
			c.inbox.push(message{run: func(context.Context) { c.opened(o) }})
		}
	})
}

// opened goes on with what waited for the row, or ends a call whose row could not be written.
func (c *liveCall) opened(o *opening) {
	if c.opening != o {
		return // who needed it sooner has looked already
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

// awaited reports whether the caller is to be told nothing yet, as it is not sure that the call is written down.
func (c *liveCall) awaited() bool { return c.opening != nil && !c.opening.sure }

// assured waits until it is sure that the row of the call will be written, and reports whether it is.
func (c *liveCall) assured() bool { return !c.awaited() || c.written() }

// written waits for the row of the call, where it is being written, and reports whether it is.
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
