package contact

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// Lifetimes of cached results with and without matches, and the size of the cache.
const (
	hitTTL           = 5 * time.Minute
	missTTL          = time.Minute
	maxCachedResults = 200_000
)

// cache holds lookup results until they expire or a write invalidates them. It is safe for concurrent use.
type cache struct {
	results *otter.Cache[cacheKey, *lookupResult]
	seed    maphash.Seed
	// writes counts writes per hash bucket of the written key. A result is valid while the counters are those before
	// it was read. A result that was read before a write and stored after it is therefore invalid.
	writes [1 << 14]atomic.Uint64
}

// cacheKey is the key of a cached result.
type cacheKey struct{ org, value string }

func newCache() *cache {
	life := otter.ExpiryWritingFunc(func(e otter.Entry[cacheKey, *lookupResult]) time.Duration {
		if len(e.Value.matches) == 0 {
			return missTTL
		}
		return hitTTL
	})
	return &cache{seed: maphash.MakeSeed(), results: otter.Must(&otter.Options[cacheKey, *lookupResult]{MaximumSize: maxCachedResults,
		ExpiryCalculator: life})}
}

// get returns a valid result.
func (c *cache) get(a lookupKey) (*lookupResult, bool) {
	f, ok := c.results.GetIfPresent(a.cacheKey())
	if !ok || f.seenWrites != c.seenWrites(a) {
		return nil, false
	}
	return f, true
}

// put stores a result. Its seenWrites must have been taken before anything was read.
func (c *cache) put(a lookupKey, f *lookupResult) { c.results.Set(a.cacheKey(), f) }

// seenWrites returns the sum of the write counters a result depends on: of the number or address, of numbers with the same
// tail, and of the organisation's connections.
func (c *cache) seenWrites(a lookupKey) uint64 {
	n := c.counter(a.cacheKey()).Load() + c.counter(cacheKey{org: a.org}).Load()
	if t := a.number.tail(); t != "" {
		n += c.counter(cacheKey{a.org, tailMark + t}).Load()
	}
	return n
}

func (c *cache) counter(k cacheKey) *atomic.Uint64 {
	return &c.writes[maphash.Comparable(c.seed, k)%uint64(len(c.writes))]
}

// invalidate invalidates the results of the given keys.
func (c *cache) invalidate(keys []cacheKey) {
	for _, k := range keys {
		c.counter(k).Add(1)
	}
}

func (c *cache) close() { c.results.StopAllGoroutines() }

// InvalidateOrg invalidates every cached result of an organisation, because its connections have changed.
func (s *Service) InvalidateOrg(org string) { s.results.invalidate([]cacheKey{{org: org}}) }
