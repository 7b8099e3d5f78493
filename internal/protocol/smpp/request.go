package smpp

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// States of a PDU in the outbox.
const (
	stateWaiting int32 = iota
	stateWriting       // or written: the peer may have it
	stateWithdrawn
	statePartlyWritten // the peer cannot have all of it
)

// pendingWrite is a PDU in the outbox.
type pendingWrite struct {
	b       []byte
	state   atomic.Int32
	written chan struct{}
}

// post queues a response. If the outbox is full it blocks, so that no more requests are read from a peer that does
// not read responses.
func (s *session) post(p PDU) *pendingWrite {
	b, err := p.Encode()
	if err != nil {
		b, _ = PDU{Command: p.Command, Status: SystemError, Sequence: p.Sequence}.Encode()
	}
	o := &pendingWrite{b: b, written: make(chan struct{})}
	select {
	case s.outbox <- o:
	case <-s.done:
	}
	return o
}

// write writes the outbox in order. The peer has half of the response timeout to read a PDU, so that the caller
// learns that a request was not sent.
func (s *session) write() {
	for {
		select {
		case <-s.done:
			return
		case o := <-s.outbox:
			if !o.state.CompareAndSwap(stateWaiting, stateWriting) {
				continue
			}
			s.conn.SetWriteDeadline(time.Now().Add(s.timeouts.response / 2))
			if n, err := s.conn.Write(o.b); err != nil {
				if n < len(o.b) {
					o.state.Store(statePartlyWritten)
				}
				s.end(errors.Join(ErrSlow, err))
				return
			}
			close(o.written)
		}
	}
}

// request sends a request when the window has a free slot, and waits for the response. The error is an *Error, also
// for an error response.
func (s *session) request(ctx context.Context, p PDU) (PDU, *Error) {
	select {
	case <-s.done:
		return PDU{}, &Error{Outcome: Retryable, Err: s.err}
	case <-ctx.Done():
		return PDU{}, &Error{Outcome: Retryable, Err: context.Cause(ctx)}
	case s.window <- struct{}{}:
	}
	defer func() { <-s.window }()
	timed, cancel := context.WithTimeoutCause(ctx, s.timeouts.response, ErrNoResponse)
	defer cancel()
	a, err := s.exchange(timed, p)
	if err != nil {
		return a, err
	}
	if a.Status != OK {
		return a, statusError(a.Status)
	}
	if a.Command != p.Command.Response() {
		return a, &Error{Outcome: InDoubt, Err: errors.New("smpp: answered with " + a.Command.String())}
	}
	return a, nil
}

// exchange sends a request without regard to the window, and waits for its response.
func (s *session) exchange(ctx context.Context, p PDU) (PDU, *Error) {
	answer := make(chan PDU, 1)
	p.Sequence = s.register(answer)
	defer s.unregister(p.Sequence)
	b, err := p.Encode()
	if err != nil {
		return PDU{}, &Error{Outcome: Permanent, Err: err}
	}
	o := &pendingWrite{b: b, written: make(chan struct{})}
	select {
	case s.outbox <- o:
	case <-s.done:
		return PDU{}, &Error{Outcome: Retryable, Err: s.err}
	case <-ctx.Done():
		return PDU{}, &Error{Outcome: Retryable, Err: context.Cause(ctx)}
	}
	select {
	case a := <-answer:
		return a, nil
	case <-s.done:
		return s.abandon(answer, o, s.err)
	case <-ctx.Done():
		return s.abandon(answer, o, context.Cause(ctx))
	}
}

// abandon ends the wait for a response. A request that was not written is withdrawn; a response that arrived in the
// meantime counts.
func (s *session) abandon(answer chan PDU, o *pendingWrite, why error) (PDU, *Error) {
	select {
	case a := <-answer:
		return a, nil
	default:
	}
	if o.state.CompareAndSwap(stateWaiting, stateWithdrawn) || o.state.Load() == statePartlyWritten {
		return PDU{}, &Error{Outcome: Retryable, Err: why}
	}
	return PDU{}, &Error{Outcome: InDoubt, Err: why}
}

// register returns the next sequence number, from 1 to 0x7fffffff (§3.2), and registers the channel for its
// response.
func (s *session) register(answer chan PDU) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		s.lastSequence = s.lastSequence%0x7fffffff + 1
		if _, taken := s.pending[s.lastSequence]; !taken {
			s.pending[s.lastSequence] = answer
			return s.lastSequence
		}
	}
}

func (s *session) unregister(sequence uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, sequence)
}

// resolve passes a response to the goroutine that waits for it; others are ignored.
func (s *session) resolve(p PDU) {
	s.mu.Lock()
	answer := s.pending[p.Sequence]
	delete(s.pending, p.Sequence)
	s.mu.Unlock()
	if answer != nil {
		answer <- p
	}
}
