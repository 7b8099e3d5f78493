package contact

import "sync"

// numberCache caches parsed numbers, up to maxCachedNumbers. When it is full, it is emptied.
type numberCache struct {
	mu      sync.Mutex // guards all
	entries map[numberCacheKey]numberCacheValue
}

type numberCacheKey struct{ text, country string }

type numberCacheValue struct {
	phoneNumber
	ok bool
}

// maxCachedNumbers bounds the cache: about a megabyte.
const maxCachedNumbers = 4096

func (r *numberCache) get(text, country string, read func(text, country string) (phoneNumber, bool)) (phoneNumber, bool) {
	k := numberCacheKey{text, country}
	r.mu.Lock()
	u, known := r.entries[k]
	r.mu.Unlock()
	if known {
		return u.phoneNumber, u.ok
	}
	u.phoneNumber, u.ok = read(text, country)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries == nil || len(r.entries) >= maxCachedNumbers {
		r.entries = map[numberCacheKey]numberCacheValue{}
	}
	r.entries[k] = u
	return u.phoneNumber, u.ok
}
