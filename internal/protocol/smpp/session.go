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
type timing struct {
	answer  time.Duration // for a response; half of it for the peer to read a PDU
	enquire time.Duration // idle time before enquire_link; 0: never
	idle    time.Duration // time without requests after which the session unbinds; 0: never
}

// inboxSize limits the requests of the peer that wait for the caller's functions.
const inboxSize = 64

// outboxSize limits the PDUs that wait to be written.
const outboxSize = 256

// closeTimeout bounds the wait for responses when a session ends, and for the response to unbind.
const lastWords = 5 * time.Second

// reply is a response, and an action to run after it is queued.
type reply struct {
	status Status
	body   Body
	then   func(*outgoing)
}

// session is one connection, of client or server.
type session struct {
	conn    net.Conn
	reader  *bufio.Reader
	timing  timing
	window  chan struct{} // a slot for each unacknowledged request
	outbox  chan *outgoing
	inbox   chan PDU
	handle  func(ctx context.Context, p PDU) reply // handles requests of the peer, one at a time except unordered ones
	admit   func(p PDU) Status                     // returns OK or the status that refuses a request; nil: all are accepted
	full    Status                                 // response to requests when the inbox is full
	aside   func(p PDU) bool                       // reports whether a request needs no order; nil: none
	working chan struct{}                          // slot of the goroutine that runs handle
	asides  chan struct{}                          // slots for unordered requests
	done    chan struct{}
	ended   sync.Once
	err     error // reason of the end; read it after done
	mu      sync.Mutex
	pending map[uint32]chan PDU
	last    uint32 // last sequence number
	heard   time.Time
	asked   time.Time // last time the peer sent anything but a response to our enquire_link
}

func newSession(conn net.Conn, t timing, window int) *session {
	now := time.Now()
	return &session{conn: conn, reader: bufio.NewReader(conn), timing: t, window: make(chan struct{}, window),
		outbox: make(chan *outgoing, outboxSize), inbox: make(chan PDU, inboxSize), done: make(chan struct{}), working: make(chan struct{}, 1),
		asides:  make(chan struct{}, asidesAtOnce),
		pending: map[uint32]chan PDU{}, heard: now, asked: now}
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
	wg.Go(s.keep)
	wg.Go(func() {
		select {
		case <-ctx.Done():
			s.leave()
		case <-s.done:
		}
	})
	s.read()
	stop()
	wg.Wait()
	return s.err
}

// shutdown stops accepting requests, waits for outstanding responses on both sides, unbinds and closes.
func (s *session) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), min(s.timing.answer, lastWords))
	defer cancel()
	occupy(ctx, s.working)
	for range cap(s.asides) {
		occupy(ctx, s.asides)
	}
	for range cap(s.window) {
		occupy(ctx, s.window)
	}
	s.unbind(ErrClosed)
}

// acquire takes a slot permanently, unless ctx ends first.
func occupy(ctx context.Context, places chan struct{}) {
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
	}
}

// read dispatches each received PDU. One PDU must be complete within the time in which something must arrive.
func (s *session) read() {
	for {
		if s.timing.enquire > 0 {
			s.conn.SetReadDeadline(time.Now().Add(2*s.timing.enquire + 2*s.timing.answer))
		} else if s.timing.idle > 0 {
			s.conn.SetReadDeadline(time.Now().Add(s.timing.idle + 2*s.timing.answer))
		}
		p, err := read(s.reader)
		var bad *Malformed
		switch {
		case errors.As(err, &bad):
			s.malformed(p, bad.Status)
		case errors.Is(err, ErrFrame):
			s.farewell(s.post(PDU{Command: GenericNack, Status: BadCommandLength}), err)
			return
		case err != nil:
			s.end(errors.Join(ErrClosed, err))
			return
		default:
			s.take(p)
		}
	}
}

// endAfter ends the session when a last PDU is written.
func (s *session) farewell(o *outgoing, why error) {
	select {
	case <-o.written:
	case <-s.done:
	case <-time.After(s.timing.answer):
	}
	s.end(why)
}

// malformed responds to a request that cannot be decoded. A response that cannot be decoded is ignored, so that its
// request stays in doubt.
func (s *session) malformed(p PDU, why Status) {
	s.hear(p)
	switch {
	case p.Command.IsAnswer() && p.Status != OK:
		s.resolve(p)
	case p.Command.wantsAnswer():
		s.post(PDU{Command: p.Command.Answer(), Status: why, Sequence: p.Sequence})
	}
}

// markAlive records that the peer has sent a PDU.
func (s *session) hear(p PDU) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = time.Now()
	if p.Command != EnquireLink.Answer() {
		s.asked = s.heard
	}
}

func (s *session) take(p PDU) {
	s.hear(p)
	switch {
	case p.Command.IsAnswer():
		s.resolve(p)
	case p.Command == EnquireLink:
		s.post(PDU{Command: p.Command.Answer(), Sequence: p.Sequence})
	case p.Command == Unbind:
		s.farewell(s.post(PDU{Command: p.Command.Answer(), Sequence: p.Sequence}), ErrUnbound)
	case commandNames[p.Command] == "":
		s.post(PDU{Command: GenericNack, Status: BadCommand, Sequence: p.Sequence})
	case !p.Command.wantsAnswer():
	default:
		s.queue(p)
	}
}

// enqueueRequest puts a request into the inbox, or refuses it.
func (s *session) queue(p PDU) {
	why := OK
	if s.admit != nil {
		why = s.admit(p)
	}
	if why == OK {
		select {
		case s.inbox <- p:
			return
		default:
			why = s.full
		}
	}
	s.post(PDU{Command: p.Command.Answer(), Status: why, Sequence: p.Sequence})
}

// maxUnordered limits the unordered requests handled at once.
const asidesAtOnce = 16

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
			places := s.working
			if s.aside != nil && s.aside(p) {
				places = s.asides
			}
			select {
			case <-s.done:
				return
			case places <- struct{}{}:
			}
			if places == s.working {
				s.answer(ctx, p)
				<-places
				continue
			}
			wg.Go(func() {
				s.answer(ctx, p)
				<-places
			})
		}
	}
}

func (s *session) answer(ctx context.Context, p PDU) {
	r := s.handle(ctx, p)
	o := s.post(PDU{Command: p.Command.Answer(), Status: r.status, Sequence: p.Sequence, Body: r.body})
	if r.then != nil {
		r.then(o)
	}
}

// keepAlive sends enquire_link after silence and ends the session without a response. It also ends the session if the
// peer has sent no request for too long.
func (s *session) keep() {
	for {
		wait, quiet, unused := s.silence()
		if unused {
			s.unbind(ErrIdle)
			return
		}
		if quiet {
			ctx, cancel := context.WithTimeout(context.Background(), s.timing.answer)
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
func (s *session) silence() (wait time.Duration, quiet, unused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait = time.Hour
	if e := s.timing.enquire; e > 0 {
		since := time.Since(s.heard)
		quiet, wait = since >= e, max(e-since, e/10)
	}
	if i := s.timing.idle; i > 0 {
		since := time.Since(s.asked)
		unused, wait = since >= i, min(wait, max(i-since, time.Millisecond))
	}
	return wait, quiet, unused
}

// unbind sends unbind and ends the session.
func (s *session) unbind(why error) {
	ctx, cancel := context.WithTimeout(context.Background(), min(s.timing.answer, lastWords))
	defer cancel()
	s.exchange(ctx, PDU{Command: Unbind})
	s.end(why)
}
