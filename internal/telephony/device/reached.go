package device

import (
	"sync"
	"time"

	"soniq/internal/platform/db"
)

// maxReached bounds reached; where it is full it starts again.
const maxReached = 20_000

// reached keeps where users can be reached, until something is committed to the tables that say so: each call asks for it. Where other
// nodes write to them, too, it keeps nothing.
type reached struct {
	mark *db.Mark // nil: nothing is kept

	mu    sync.Mutex // guards the two below
	at    uint64     // the mark that known is of
	known map[who][]Binding
}

type who struct{ org, user string }

// newReached makes one of the tables that bindingsOfUser reads.
func newReached(d *db.DB) *reached {
	return &reached{mark: d.Mark("registrations", "devices"), known: map[who][]Binding{}}
}

// get returns the bindings in force, from load where they are not known.
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

// inForce are the bindings that have not expired.
func inForce(all []Binding, now time.Time) (valid []Binding) {
	for _, b := range all {
		if b.Expires.After(now) {
			valid = append(valid, b)
		}
	}
	return valid
}
