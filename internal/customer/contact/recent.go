package contact

import "sync"

// numberCache caches parsed numbers, up to maxCachedNumbers. When it is full, it is emptied.
type recent struct {
	mu  sync.Mutex // guards all
	all map[asWritten]understood
}

type asWritten struct{ text, country string }

type understood struct {
	number
	ok bool
}

// maxCachedNumbers bounds the cache: about a megabyte.
const maxRecent = 4096

func (r *recent) get(text, country string, read func(text, country string) (number, bool)) (number, bool) {
	k := asWritten{text, country}
	r.mu.Lock()
	u, known := r.all[k]
	r.mu.Unlock()
	if known {
		return u.number, u.ok
	}
	u.number, u.ok = read(text, country)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || len(r.all) >= maxRecent {
		r.all = map[asWritten]understood{}
	}
	r.all[k] = u
	return u.number, u.ok
}
