// Package bus carries short-lived messages between rooms: wake-ups, and the live stream. It is never the truth:
// a lost message costs a poll, not a fact. Today it works inside one process.
package bus

import "sync"

// A Bus delivers messages to whoever subscribed to their subject. It is safe for concurrent use.
type Bus struct {
	mu   sync.RWMutex // guards subs
	subs map[string]map[*Subscription]struct{}
}

// A Subscription receives messages on C until it is closed. A slow receiver loses messages, it never holds up
// a sender.
type Subscription struct {
	C       <-chan any
	c       chan any
	subject string
	bus     *Bus
}

// New makes an empty bus.
func New() *Bus { return &Bus{subs: map[string]map[*Subscription]struct{}{}} }

// Publish hands the message to every subscriber with room for it, and returns at once.
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

// Subscribe starts receiving a subject; up to buffer messages wait. Use a buffer of 1 for wake-ups.
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

// Close stops receiving. C is not closed.
func (s *Subscription) Close() {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	delete(s.bus.subs[s.subject], s)
	if len(s.bus.subs[s.subject]) == 0 {
		delete(s.bus.subs, s.subject)
	}
}
