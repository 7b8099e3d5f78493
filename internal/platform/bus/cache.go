package bus

import (
	"sync"
	"time"
)

// maxCached limits a cache. A full cache is cleared.
const maxCached = 20_000

// Cache keeps loaded values for a short time, or until a message on its subject reports a change. A change publishes
// the key after its commit. A message that is not a string clears the cache. There is no goroutine: the next lookup
// reads the messages. It is safe for concurrent use.
type Cache[V any] struct {
	life    time.Duration
	now     func() time.Time
	changes *Subscription
	clears  bool // every message clears the cache, because messages do not name its keys

	mu      sync.Mutex // guards the two below
	entries map[string]cacheEntry[V]
	changed uint64 // number of changes; a value loaded before a change is not stored after it
}

type cacheEntry[V any] struct {
	value V
	until time.Time
}

// NewCache returns a cache whose values live for at most life.
func NewCache[V any](b *Bus, subject string, life time.Duration, now func() time.Time) *Cache[V] {
	return &Cache[V]{life: life, now: now, changes: b.Subscribe(subject, 256), entries: map[string]cacheEntry[V]{}}
}

// NewClearedCache returns a cache that every message on its subject clears, for messages that do not name its keys.
func NewClearedCache[V any](b *Bus, subject string, life time.Duration, now func() time.Time) *Cache[V] {
	c := NewCache[V](b, subject, life, now)
	c.clears = true
	return c
}

// Get returns the value of a key. It calls load if the value is not cached. Errors are not cached.
func (c *Cache[V]) Get(key string, load func() (V, error)) (V, error) {
	v, seen, ok := c.lookup(key)
	if ok {
		return v, nil
	}
	v, err := load()
	if err == nil {
		c.store(key, v, seen)
	}
	return v, err
}

func (c *Cache[V]) lookup(key string) (v V, seen uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applyChanges()
	e, ok := c.entries[key]
	if ok && c.now().Before(e.until) {
		return e.value, c.changed, true
	}
	return v, c.changed, false
}

func (c *Cache[V]) store(key string, v V, seen uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applyChanges()
	if c.changed != seen {
		return
	}
	if len(c.entries) >= maxCached {
		clear(c.entries)
	}
	c.entries[key] = cacheEntry[V]{v, c.now().Add(c.life)}
}

// applyChanges removes changed keys. If the buffer was full, messages may be lost, so it removes everything.
func (c *Cache[V]) applyChanges() {
	for n := 1; ; n++ {
		select {
		case m := <-c.changes.C:
			c.changed++
			if key, one := m.(string); one && !c.clears && n < cap(c.changes.C) {
				delete(c.entries, key)
				continue
			}
			clear(c.entries)
		default:
			return
		}
	}
}

// Close ends the subscription. The cache must not be used afterwards.
func (c *Cache[V]) Close() { c.changes.Close() }
