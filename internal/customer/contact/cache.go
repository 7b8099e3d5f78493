package contact

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// Lifetimes of cached results with and without matches, and the size of the cache.
const (
	hitLife   = 5 * time.Minute
	missLife  = time.Minute
	maxCached = 200_000
)

// cache holds lookup results until they expire or a write invalidates them. It is safe for concurrent use.
type cache struct {
	known *otter.Cache[key, *found]
	seed  maphash.Seed
	// writes counts writes per hash bucket of the written key. A result is valid while the counters are those before
	// it was read. A result that was read before a write and stored after it is therefore invalid.
	writes [1 << 14]atomic.Uint64
}

// cacheKey is the key of a cached result.
type key struct{ org, value string }

func newCache() *cache {
	life := otter.ExpiryWritingFunc(func(e otter.Entry[key, *found]) time.Duration {
		if len(e.Value.matches) == 0 {
			return missLife
		}
		return hitLife
	})
	return &cache{seed: maphash.MakeSeed(), known: otter.Must(&otter.Options[key, *found]{MaximumSize: maxCached, ExpiryCalculator: life})}
}

// get returns a valid result.
func (c *cache) get(a asked) (*found, bool) {
	f, ok := c.known.GetIfPresent(a.key())
	if !ok || f.seen != c.seen(a) {
		return nil, false
	}
	return f, true
}

// put stores a result. Its seenWrites must have been taken before anything was read.
func (c *cache) keep(a asked, f *found) { c.known.Set(a.key(), f) }

// seenWrites returns the sum of the write counters a result depends on: of the number or address, of numbers with the same
// tail, and of the organisation's connections.
func (c *cache) seen(a asked) uint64 {
	n := c.counter(a.key()).Load() + c.counter(key{org: a.org}).Load()
	if t := a.number.tail(); t != "" {
		n += c.counter(key{a.org, tailMark + t}).Load()
	}
	return n
}

func (c *cache) counter(k key) *atomic.Uint64 {
	return &c.writes[maphash.Comparable(c.seed, k)%uint64(len(c.writes))]
}

// invalidate invalidates the results of the given keys.
func (c *cache) drop(keys []key) {
	for _, k := range keys {
		c.counter(k).Add(1)
	}
}

func (c *cache) close() { c.known.StopAllGoroutines() }

// InvalidateOrg invalidates every cached result of an organisation, because its connections have changed.
func (s *Service) Reconnected(org string) { s.cache.drop([]key{{org: org}}) }
