package pbx

import (
	"context"
	"sync"

	"soniq/internal/protocol/sip"
)

// message is an event of a leg, or a function to run in the call's goroutine.
type message struct {
	leg     *leg
	event   sip.Event
	run     func(ctx context.Context)
	ifEnded func() // runs instead of run if the call has ended; may be nil
}

// inbox is an unbounded queue. push never blocks, because signalling must not wait for a call that waits for its
// database.
type inbox struct {
	mu     sync.Mutex // guards queue and closed
	queue  []message
	closed bool
	ready  chan struct{}
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

// push reports false if the inbox is closed.
func (i *inbox) push(m message) bool {
	i.mu.Lock()
	if i.closed {
		i.mu.Unlock()
		return false
	}
	i.queue = append(i.queue, m)
	i.mu.Unlock()
	select {
	case i.ready <- struct{}{}:
	default:
	}
	return true
}

// pop returns the oldest message; ok is false when there is none.
func (i *inbox) pop() (m message, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.queue) == 0 {
		return m, false
	}
	m = i.queue[0]
	i.queue[0] = message{}
	i.queue = i.queue[1:]
	if len(i.queue) == 0 {
		i.queue = nil
	}
	return m, true
}

// close closes the inbox and returns the unread messages.
func (i *inbox) close() []message {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	left := i.queue
	i.queue = nil
	return left
}
