package event

import "sync"

// followers counts the open streams of this node that show a kind, by organisation: what is told and not kept need not be made for nobody.
type followers struct {
	mu sync.Mutex // guards of
	of map[Kind]map[string]int
}

// Follow notes a stream of an organisation that shows these kinds, until leave is called.
func (o *Outbox) Follow(org string, kinds map[Kind]bool) (leave func()) {
	o.followers.add(org, kinds, 1)
	return func() { o.followers.add(org, kinds, -1) }
}

func (f *followers) add(org string, kinds map[Kind]bool, n int) {
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

// Followers are the organisations of which a stream shows the kind; nil where there is none.
func (o *Outbox) Followers(k Kind) map[string]bool {
	f := &o.followers
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
