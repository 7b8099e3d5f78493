// Package inbox has the queue of messages from which a call reads.
package inbox

import (
	"sync"
)

// Inbox is an unbounded queue of the messages of a call. push never blocks, because signalling must not wait for a call
// that waits for its database.
type Inbox[M any] struct {
	mu     sync.Mutex // guards queue and closed
	queue  []M
	closed bool
	Ready  chan struct{} // receives a value after a push
}

// New returns an empty inbox.
func New[M any]() *Inbox[M] { return &Inbox[M]{Ready: make(chan struct{}, 1)} }

// Push reports false if the inbox is closed.
func (i *Inbox[M]) Push(m M) bool {
	i.mu.Lock()
	if i.closed {
		i.mu.Unlock()
		return false
	}
	i.queue = append(i.queue, m)
	i.mu.Unlock()
	select {
	case i.Ready <- struct{}{}:
	default:
	}
	return true
}

// Pop returns the oldest message; ok is false when there is none.
func (i *Inbox[M]) Pop() (m M, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.queue) == 0 {
		return m, false
	}
	m = i.queue[0]
	var none M
	i.queue[0] = none
	i.queue = i.queue[1:]
	if len(i.queue) == 0 {
		i.queue = nil
	}
	return m, true
}

// Close closes the inbox and returns the unread messages.
func (i *Inbox[M]) Close() []M {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	left := i.queue
	i.queue = nil
	return left
}
