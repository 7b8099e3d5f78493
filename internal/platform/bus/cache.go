package bus

import (
	"sync"
	"time"
)

// maxCached bounds a cache; one that is full starts again.
const maxCached = 20_000

// A Cache keeps what was looked up, for a few moments or until its subject says that it changed. Whoever changes
// the fact publishes its key on the subject once that is committed; any message that is not a string drops
// everything. It needs no goroutine: messages are read by the next look-up. It is safe for concurrent use.
type Cache[V any] struct {
	life    time.Duration
	now     func() time.Time
	changes *Subscription

	mu      sync.Mutex // guards the two below
	known   map[string]cached[V]
	changed uint64 // counts what was dropped, so that a value read before the change is not kept after it
}

type cached[V any] struct {
	value V
	until time.Time
}

// NewCache makes a cache whose values live for at most life.
func NewCache[V any](b *Bus, subject string, life time.Duration, now func() time.Time) *Cache[V] {
	return &Cache[V]{life: life, now: now, changes: b.Subscribe(subject, 256), known: map[string]cached[V]{}}
}

// Get returns the value of a key, from load where it is not known. Errors are not kept.
func (c *Cache[V]) Get(key string, load func() (V, error)) (V, error) {
	v, seen, ok := c.look(key)
	if ok {
		return v, nil
	}
	v, err := load()
	if err == nil {
		c.keep(key, v, seen)
	}
	return v, err
}

func (c *Cache[V]) look(key string) (v V, seen uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listen()
	e, ok := c.known[key]
	if ok && c.now().Before(e.until) {
		return e.value, c.changed, true
	}
	return v, c.changed, false
}

func (c *Cache[V]) keep(key string, v V, seen uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listen()
	if c.changed != seen {
		return
	}
	if len(c.known) >= maxCached {
		clear(c.known)
	}
	c.known[key] = cached[V]{v, c.now().Add(c.life)}
}

// listen drops what was reported as changed. Where so many reports waited that some may have been lost, everything
// is dropped.
func (c *Cache[V]) listen() {
	for n := 1; ; n++ {
		select {
		case m := <-c.changes.C:
			c.changed++
			if key, one := m.(string); one && n < cap(c.changes.C) {
				delete(c.known, key)
				continue
			}
			clear(c.known)
		default:
			return
		}
	}
}

// Close stops listening; the cache must not be used afterwards.
func (c *Cache[V]) Close() { c.changes.Close() }
