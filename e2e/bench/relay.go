package main

import (
	"fmt"
	"net"
	"slices"
	"time"
)

// relayed holds the cost of relayed calls with audio.
type relayed struct {
	CPU        float64 // percent of a core for each call
	KiB        float64 // of memory for each call
	P50, P99   float64 // ms from sending to receiving
	Sent, Lost int
}

// subject is a measured server: an address and its processes.
type subject struct {
	name, address string
	processes     []*process
}

// conversations are established calls with the audio of both sides.
type conversations struct {
	caller, callee *agent
	left, right    *orchestra
	calls          []*dialog
	streams        []stream
}

// talk sets up calls and keeps them.
func talk(s subject, n int, mark string) (c *conversations, err error) {
	c = &conversations{}
	if c.left, err = newOrchestra(carrierIP); err != nil {
		return c, err
	}
	if c.right, err = newOrchestra("127.0.0.1"); err != nil {
		return c, err
	}
	if c.caller, err = newAgent(carrierIP+":5081", c.left.seat); err != nil {
		return c, err
	}
	if c.callee, err = newAgent(fmt.Sprintf("127.0.0.1:%d", calleePort), c.right.seat); err != nil {
		return c, err
	}
	return c, c.dial(s, n, mark)
}

// dial sets up further calls.
func (c *conversations) dial(s subject, n int, mark string) error {
	for i := range n {
		d, err := c.caller.dial(s.address, fmt.Sprintf("%s%d", mark, i))
		if err != nil {
			return fmt.Errorf("call %d through %s: %w", i, s.name, err)
		}
		c.calls = append(c.calls, d)
	}
	return c.answers()
}

// answers sets up the audio streams in both directions.
func (c *conversations) answers() error {
	c.callee.mu.Lock()
	defer c.callee.mu.Unlock()
	if out, in := len(c.callee.heard), len(c.calls); out != in {
		return fmt.Errorf("%d calls came out, %d went in", out, in)
	}
	c.streams = nil
	for _, d := range c.calls {
		c.streams = append(c.streams, stream{c.left.sockets[d.seat], d.far})
	}
	for _, h := range c.callee.heard {
		c.streams = append(c.streams, stream{c.right.sockets[h.seat], h.far})
	}
	return nil
}

// end hangs up and returns the delays of all audio that came.
func (c *conversations) end() []uint32 {
	for _, d := range c.calls {
		_ = d.bye()
	}
	var delays []uint32
	for _, o := range []*orchestra{c.left, c.right} {
		if o != nil {
			delays = append(delays, o.close()...)
		}
	}
	for _, a := range []*agent{c.caller, c.callee} {
		if a != nil {
			a.close()
		}
	}
	return delays
}

// relay measures n calls with audio for a time.
func relay(s subject, n int, d time.Duration, mark string) (r relayed, err error) {
	c, err := talk(s, 1, mark+"first") // code and data loaded with the first call do not count
	c.end()
	if err != nil {
		return r, err
	}
	before := memory(s.processes...)
	if c, err = talk(s, n, mark); err != nil {
		c.end()
		return r, err
	}
	used := make(chan time.Duration, 1)
	held := make(chan int, 1)
	go func() { // without the first and the last second
		<-time.After(time.Second)
		begun := cpu(s.processes...)
		<-time.After(d - 2*time.Second)
		used <- cpu(s.processes...) - begun
		held <- memory(s.processes...)
	}()
	r.Sent = play(c.streams, d)
	r.CPU = 100 * (<-used).Seconds() / (d - 2*time.Second).Seconds() / float64(n)
	r.KiB = float64(<-held-before) / float64(n)
	<-time.After(200 * time.Millisecond) // audio in transit
	r.measure(c.end())
	return r, nil
}

func (r *relayed) measure(delays []uint32) {
	r.Lost = r.Sent - len(delays)
	if n := len(delays); n > 0 {
		slices.Sort(delays)
		r.P50, r.P99 = float64(delays[n/2])/1000, float64(delays[n*99/100])/1000
	}
}

// direct measures the same audio without a server in between.
func direct(n int, d time.Duration) (r relayed, err error) {
	left, err := newOrchestra(carrierIP)
	if err != nil {
		return r, err
	}
	right, err := newOrchestra("127.0.0.1")
	if err != nil {
		return r, err
	}
	var all []stream
	between := func(from, to *orchestra, i int) {
		far := to.sockets[i%socketsPerSide].LocalAddr().(*net.UDPAddr).AddrPort()
		all = append(all, stream{from.sockets[i%socketsPerSide], far})
	}
	for i := range n {
		between(left, right, i)
		between(right, left, i)
	}
	r.Sent = play(all, d)
	<-time.After(200 * time.Millisecond)
	r.measure(append(left.close(), right.close()...))
	return r, nil
}
