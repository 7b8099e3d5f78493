package smpp

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// timeouts are the time limits of a session.
type timeouts struct {
	response time.Duration // for a response; half of it for the peer to read a PDU
	enquire  time.Duration // idle time before enquire_link; 0: never
	idle     time.Duration // time without requests after which the session unbinds; 0: never
}

// inboxSize limits the requests of the peer that wait for the caller's functions.
const inboxSize = 64

// outboxSize limits the PDUs that wait to be written.
const outboxSize = 256

// closeTimeout bounds the wait for responses when a session ends, and for the response to unbind.
const closeTimeout = 5 * time.Second

// reply is a response, and an action to run after it is queued.
type reply struct {
	status    Status
	body      Body
	afterPost func(*pendingWrite)
}

// session is one connection, of client or server.
type session struct {
	conn           net.Conn
	reader         *bufio.Reader
	timeouts       timeouts
	window         chan struct{} // a slot for each unacknowledged request
	outbox         chan *pendingWrite
	inbox          chan PDU
	handle         func(ctx context.Context, p PDU) reply // handles requests of the peer, one at a time except unordered ones
	admit          func(p PDU) Status                     // returns OK or the status that refuses a request; nil: all are accepted
	fullStatus     Status                                 // response to requests when the inbox is full
	unordered      func(p PDU) bool                       // reports whether a request needs no order; nil: none
	handlerSlot    chan struct{}                          // slot of the goroutine that runs handle
	unorderedSlots chan struct{}                          // slots for unordered requests
	done           chan struct{}
	ended          sync.Once
	err            error // reason of the end; read it after done
	mu             sync.Mutex
	pending        map[uint32]chan PDU
	lastSequence   uint32 // last sequence number
	lastReceived   time.Time
	lastActivity   time.Time // last time the peer sent anything but a response to our enquire_link
}

func newSession(conn net.Conn, t timeouts, window int) *session {
	now := time.Now()
	return &session{conn: conn, reader: bufio.NewReader(conn), timeouts: t, window: make(chan struct{}, window),
		outbox: make(chan *pendingWrite, outboxSize), inbox: make(chan PDU, inboxSize), done: make(chan struct{}),
		handlerSlot: make(chan struct{}, 1), unorderedSlots: make(chan struct{}, maxUnordered),
		pending: map[uint32]chan PDU{}, lastReceived: now, lastActivity: now}
}

// end closes the connection; the first reason is kept.
func (s *session) end(why error) {
	s.ended.Do(func() {
		s.err = why
		close(s.done)
		s.conn.Close()
	})
}

// run reads until the session ends, and returns when all of its goroutines have ended. When ctx ends it unbinds.
func (s *session) run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(s.write)
	wg.Go(func() { s.serve(work) })
	wg.Go(s.keepAlive)
	wg.Go(func() {
		select {
		case <-ctx.Done():
			s.shutdown()
		case <-s.done:
		}
	})
	s.read()
	stop()
	wg.Wait()
	return s.err
}

// shutdown stops accepting requests, waits for outstanding responses on both sides, unbinds and closes.
func (s *session) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), min(s.timeouts.response, closeTimeout))
	defer cancel()
	acquire(ctx, s.handlerSlot)
	for range cap(s.unorderedSlots) {
		acquire(ctx, s.unorderedSlots)
	}
	for range cap(s.window) {
		acquire(ctx, s.window)
	}
	s.unbind(ErrClosed)
}

// acquire takes a slot permanently, unless ctx ends first.
func acquire(ctx context.Context, places chan struct{}) {
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
	}
}

// read dispatches each received PDU. One PDU must be complete within the time in which something must arrive.
func (s *session) read() {
	for {
		if s.timeouts.enquire > 0 {
			s.conn.SetReadDeadline(time.Now().Add(2*s.timeouts.enquire + 2*s.timeouts.response))
		} else if s.timeouts.idle > 0 {
			s.conn.SetReadDeadline(time.Now().Add(s.timeouts.idle + 2*s.timeouts.response))
		}
		p, err := read(s.reader)
		var bad *Malformed
		switch {
		case errors.As(err, &bad):
			s.malformed(p, bad.Status)
		case errors.Is(err, ErrFrame):
			s.endAfter(s.post(PDU{Command: GenericNack, Status: BadCommandLength}), err)
			return
		case err != nil:
			s.end(errors.Join(ErrClosed, err))
			return
		default:
			s.dispatch(p)
		}
	}
}

// endAfter ends the session when a last PDU is written.
func (s *session) endAfter(o *pendingWrite, why error) {
	select {
	case <-o.written:
	case <-s.done:
	case <-time.After(s.timeouts.response):
	}
	s.end(why)
}

// malformed responds to a request that cannot be decoded. A response that cannot be decoded is ignored, so that its
// request stays in doubt.
func (s *session) malformed(p PDU, why Status) {
	s.markAlive(p)
	switch {
	case p.Command.IsResponse() && p.Status != OK:
		s.resolve(p)
	case p.Command.expectsResponse():
		s.post(PDU{Command: p.Command.Response(), Status: why, Sequence: p.Sequence})
	}
}

// markAlive records that the peer has sent a PDU.
func (s *session) markAlive(p PDU) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastReceived = time.Now()
	if p.Command != EnquireLink.Response() {
		s.lastActivity = s.lastReceived
	}
}

func (s *session) dispatch(p PDU) {
	s.markAlive(p)
	switch {
	case p.Command.IsResponse():
		s.resolve(p)
	case p.Command == EnquireLink:
		s.post(PDU{Command: p.Command.Response(), Sequence: p.Sequence})
	case p.Command == Unbind:
		s.endAfter(s.post(PDU{Command: p.Command.Response(), Sequence: p.Sequence}), ErrUnbound)
	case commandNames[p.Command] == "":
		s.post(PDU{Command: GenericNack, Status: BadCommand, Sequence: p.Sequence})
	case !p.Command.expectsResponse():
	default:
		s.enqueueRequest(p)
	}
}

// enqueueRequest puts a request into the inbox, or refuses it.
func (s *session) enqueueRequest(p PDU) {
	why := OK
	if s.admit != nil {
		why = s.admit(p)
	}
	if why == OK {
		select {
		case s.inbox <- p:
			return
		default:
			why = s.fullStatus
		}
	}
	s.post(PDU{Command: p.Command.Response(), Status: why, Sequence: p.Sequence})
}

// maxUnordered limits the unordered requests handled at once.
const maxUnordered = 16

// serve handles the requests in the inbox: one after the other, except unordered ones, of which several run at once.
// Requests left when the session ends get no response, so that the peer sends them again.
func (s *session) serve(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-s.done:
			return
		case p := <-s.inbox:
			places := s.handlerSlot
			if s.unordered != nil && s.unordered(p) {
				places = s.unorderedSlots
			}
			select {
			case <-s.done:
				return
			case places <- struct{}{}:
			}
			if places == s.handlerSlot {
				s.respond(ctx, p)
				<-places
				continue
			}
			wg.Go(func() {
				s.respond(ctx, p)
				<-places
			})
		}
	}
}

func (s *session) respond(ctx context.Context, p PDU) {
	r := s.handle(ctx, p)
	o := s.post(PDU{Command: p.Command.Response(), Status: r.status, Sequence: p.Sequence, Body: r.body})
	if r.afterPost != nil {
		r.afterPost(o)
	}
}

// keepAlive sends enquire_link after silence and ends the session without a response. It also ends the session if the
// peer has sent no request for too long.
func (s *session) keepAlive() {
	for {
		wait, quiet, unused := s.checkIdle()
		if unused {
			s.unbind(ErrIdle)
			return
		}
		if quiet {
			ctx, cancel := context.WithTimeout(context.Background(), s.timeouts.response)
			if _, err := s.exchange(ctx, PDU{Command: EnquireLink}); err != nil {
				s.end(ErrIdle)
			}
			cancel()
		}
		select {
		case <-s.done:
			return
		case <-time.After(wait):
		}
	}
}

// checkIdle returns which limits are reached, and when to check again.
func (s *session) checkIdle() (wait time.Duration, quiet, unused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait = time.Hour
	if e := s.timeouts.enquire; e > 0 {
		since := time.Since(s.lastReceived)
		quiet, wait = since >= e, max(e-since, e/10)
	}
	if i := s.timeouts.idle; i > 0 {
		since := time.Since(s.lastActivity)
		unused, wait = since >= i, min(wait, max(i-since, time.Millisecond))
	}
	return wait, quiet, unused
}

// unbind sends unbind and ends the session.
func (s *session) unbind(why error) {
	ctx, cancel := context.WithTimeout(context.Background(), min(s.timeouts.response, closeTimeout))
	defer cancel()
	s.exchange(ctx, PDU{Command: Unbind})
	s.end(why)
}
