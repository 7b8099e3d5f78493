package smpp

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// timing is how long a session waits for what.
type timing struct {
	answer  time.Duration // for an answer; half of it for the other side to take what we write
	enquire time.Duration // after which silence we ask whether somebody is there; 0 never
	idle    time.Duration // after which the other side is told to go when it does nothing; 0 never
}

// inboxSize is how many requests of the other side wait for the caller's functions.
const inboxSize = 64

// outboxSize is how many PDUs wait to be written.
const outboxSize = 256

// lastWords is how long a session that is told to end waits for answers, and for its unbind's.
const lastWords = 5 * time.Second

// A reply is an answer, and what is to be done when it is on its way.
type reply struct {
	status Status
	body   Body
	then   func(*outgoing)
}

// A session is one connection, of either side.
type session struct {
	conn    net.Conn
	reader  *bufio.Reader
	timing  timing
	window  chan struct{} // a place for each request that may be unanswered
	outbox  chan *outgoing
	inbox   chan PDU
	handle  func(ctx context.Context, p PDU) reply // answers requests that are not the session's own, one at a time but for those aside
	admit   func(p PDU) Status                     // whether a request is let in; nil: all are
	full    Status                                 // what requests are answered for which the inbox has no place
	aside   func(p PDU) bool                       // which of them need no order; nil: none
	working chan struct{}                          // a place for who runs handle
	asides  chan struct{}                          // places for what needs no order
	done    chan struct{}
	ended   sync.Once
	err     error // why it ended; read after done
	mu      sync.Mutex
	pending map[uint32]chan PDU
	last    uint32 // sequence number
	heard   time.Time
	asked   time.Time // when the other side last did more than answer our enquire_link
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

// run reads until the session ends, and returns when all of its goroutines have. When ctx ends it unbinds.
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

// leave takes no more, waits for what is unanswered on both sides, unbinds and closes.
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

// occupy takes a place for good, unless ctx ends before it is free.
func occupy(ctx context.Context, places chan struct{}) {
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
	}
}

// read gives each PDU to where it belongs. Whatever comes, one PDU must be complete within the time in which something has
// to be heard.
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

// farewell ends when a last PDU is written.
func (s *session) farewell(o *outgoing, why error) {
	select {
	case <-o.written:
	case <-s.done:
	case <-time.After(s.timing.answer):
	}
	s.end(why)
}

// malformed answers a request that cannot be read. An answer that cannot be read is none: who waits for it stays in doubt.
func (s *session) malformed(p PDU, why Status) {
	s.hear(p)
	switch {
	case p.Command.IsAnswer() && p.Status != OK:
		s.resolve(p)
	case p.Command.wantsAnswer():
		s.post(PDU{Command: p.Command.Answer(), Status: why, Sequence: p.Sequence})
	}
}

// hear notes that the other side is there.
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

// queue gives a request to the caller's functions, or refuses it.
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

// asidesAtOnce is how many requests that need no order are worked on at once.
const asidesAtOnce = 16

// serve answers what is in the inbox: one after the other, but what needs no order, of which several are worked on at once. What is
// left of it when the session ends is not answered, so that the other side sends it again.
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

// keep asks whether the other side is there when it has been silent, and ends the session when nobody answers, or when the
// other side has wanted nothing for too long.
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

// silence tells what is due, and when to look again.
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

// unbind says goodbye and ends.
func (s *session) unbind(why error) {
	ctx, cancel := context.WithTimeout(context.Background(), min(s.timing.answer, lastWords))
	defer cancel()
	s.exchange(ctx, PDU{Command: Unbind})
	s.end(why)
}
