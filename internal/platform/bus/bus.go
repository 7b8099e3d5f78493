// Package bus carries short-lived messages between packages: wake-ups, and the event stream. It is not a source of
// truth: a lost message only delays its effect until the next poll. It works within one process.
package bus

import "sync"

// Bus delivers messages to the subscribers of their subject. It is safe for concurrent use.
type Bus struct {
	mu   sync.RWMutex // guards subs
	subs map[string]map[*Subscription]struct{}
}

// Subscription receives messages on C until it is closed. A slow receiver loses messages; it never blocks a sender.
type Subscription struct {
	C       <-chan any
	c       chan any
	subject string
	bus     *Bus
}

// New returns an empty bus.
func New() *Bus { return &Bus{subs: map[string]map[*Subscription]struct{}{}} }

// Publish sends the message to every subscriber with free buffer space. It does not block.
func (b *Bus) Publish(subject string, message any) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for s := range b.subs[subject] {
		select {
		case s.c <- message:
		default:
		}
	}
}

// Subscribe subscribes to a subject with a buffer of messages. Use a buffer of 1 for wake-ups.
func (b *Bus) Subscribe(subject string, buffer int) *Subscription {
	c := make(chan any, buffer)
	s := &Subscription{C: c, c: c, subject: subject, bus: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs[subject] == nil {
		b.subs[subject] = map[*Subscription]struct{}{}
	}
	b.subs[subject][s] = struct{}{}
	return s
}

// Close ends the subscription. C is not closed.
func (s *Subscription) Close() {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	delete(s.bus.subs[s.subject], s)
	if len(s.bus.subs[s.subject]) == 0 {
		delete(s.bus.subs, s.subject)
	}
}
