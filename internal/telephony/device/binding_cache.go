package device

import (
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// maxCachedUsers is the maximum size of a bindingCache. A full cache is cleared.
const maxCachedUsers = 20_000

// bindingCache caches the bindings of users until the next commit to the tables registrations and devices, because
// every call reads them. If other nodes write to the database (PostgreSQL), it caches nothing. It is safe for
// concurrent use.
type bindingCache struct {
	counter *db.ChangeCounter // nil: no caching

	mu      sync.Mutex // guards the two below
	version uint64     // value of counter to which byUser belongs
	byUser  map[userKey][]Binding
}

type userKey struct{ org, user string }

// newBindingCache returns a cache that is invalidated by the tables which bindingsOfUser reads.
func newBindingCache(d *db.DB) *bindingCache {
	return &bindingCache{counter: d.ChangeCounter("registrations", "devices"), byUser: map[userKey][]Binding{}}
}

// get returns the unexpired bindings, from load if they are not cached.
func (r *bindingCache) get(w userKey, now time.Time, load func() ([]Binding, error)) ([]Binding, error) {
	if r.counter == nil {
		return load()
	}
	at := r.counter.Value()
	all, ok := r.lookup(w, at)
	if ok {
		return unexpired(all, now), nil
	}
	all, err := load()
	if err == nil {
		r.store(w, at, all)
	}
	return all, err
}

func (r *bindingCache) lookup(w userKey, at uint64) (all []Binding, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.version != at {
		return nil, false
	}
	all, ok = r.byUser[w]
	return all, ok
}

func (r *bindingCache) store(w userKey, at uint64, all []Binding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case at < r.version:
		return
	case at > r.version, len(r.byUser) >= maxCachedUsers:
		clear(r.byUser)
		r.version = at
	}
	r.byUser[w] = all
}

// unexpired returns the bindings that expire after now.
func unexpired(all []Binding, now time.Time) (valid []Binding) {
	for _, b := range all {
		if b.Expires.After(now) {
			valid = append(valid, b)
		}
	}
	return valid
}
