package device

import (
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// maxCachedUsers is the maximum size of a bindingCache. A full cache is cleared.
const maxReached = 20_000

// bindingCache caches the bindings of users until the next commit to the tables registrations and devices, because
// every call reads them. If other nodes write to the database (PostgreSQL), it caches nothing. It is safe for
// concurrent use.
type reached struct {
	mark *db.Mark // nil: no caching

	mu    sync.Mutex // guards the two below
	at    uint64     // value of counter to which byUser belongs
	known map[who][]Binding
}

type who struct{ org, user string }

// newBindingCache returns a cache that is invalidated by the tables which bindingsOfUser reads.
func newReached(d *db.DB) *reached {
	return &reached{mark: d.Mark("registrations", "devices"), known: map[who][]Binding{}}
}

// get returns the unexpired bindings, from load if they are not cached.
func (r *reached) get(w who, now time.Time, load func() ([]Binding, error)) ([]Binding, error) {
	if r.mark == nil {
		return load()
	}
	at := r.mark.Now()
	all, ok := r.look(w, at)
	if ok {
		return inForce(all, now), nil
	}
	all, err := load()
	if err == nil {
		r.keep(w, at, all)
	}
	return all, err
}

func (r *reached) look(w who, at uint64) (all []Binding, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at != at {
		return nil, false
	}
	all, ok = r.known[w]
	return all, ok
}

func (r *reached) keep(w who, at uint64, all []Binding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case at < r.at:
		return
	case at > r.at, len(r.known) >= maxReached:
		clear(r.known)
		r.at = at
	}
	r.known[w] = all
}

// unexpired returns the bindings that expire after now.
func inForce(all []Binding, now time.Time) (valid []Binding) {
	for _, b := range all {
		if b.Expires.After(now) {
			valid = append(valid, b)
		}
	}
	return valid
}
