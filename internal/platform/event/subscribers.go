package event

import "sync"

// subscribers counts the open event streams of this node by kind and organisation. It avoids generating ephemeral
// events without a receiver.
type subscribers struct {
	mu sync.Mutex // guards of
	of map[Kind]map[string]int
}

// Subscribe registers an event stream of an organisation with its kinds until leave is called.
func (o *Outbox) Subscribe(org string, kinds map[Kind]bool) (leave func()) {
	o.subscribers.add(org, kinds, 1)
	return func() { o.subscribers.add(org, kinds, -1) }
}

func (f *subscribers) add(org string, kinds map[Kind]bool, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, shown := range kinds {
		if !shown {
			continue
		}
		if f.of == nil {
			f.of = map[Kind]map[string]int{}
		}
		if f.of[k] == nil {
			f.of[k] = map[string]int{}
		}
		if f.of[k][org] += n; f.of[k][org] == 0 {
			delete(f.of[k], org)
		}
	}
}

// Subscribers returns the organisations with a stream that includes the kind; nil if there are none.
func (o *Outbox) Subscribers(k Kind) map[string]bool {
	f := &o.subscribers
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.of[k]) == 0 {
		return nil
	}
	all := make(map[string]bool, len(f.of[k]))
	for org := range f.of[k] {
		all[org] = true
	}
	return all
}
