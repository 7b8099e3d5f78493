package contact

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// How long answers are kept, and how many.
const (
	hitLife   = 5 * time.Minute
	missLife  = time.Minute
	maxCached = 200_000
)

// A cache keeps answers for a while, or until a write says that they may be wrong. It is safe for concurrent use.
type cache struct {
	known *otter.Cache[key, *found]
	seed  maphash.Seed
	// writes counts writes, by a part of the hash of what was written. An answer holds as long as the counts it was read
	// under: so one that was read before a write, and kept after it, is no answer either.
	writes [1 << 14]atomic.Uint64
}

// A key is what an answer is cached under.
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

// get returns an answer that still holds.
func (c *cache) get(a asked) (*found, bool) {
	f, ok := c.known.GetIfPresent(a.key())
	if !ok || f.seen != c.seen(a) {
		return nil, false
	}
	return f, true
}

// keep caches an answer. Its seen was taken before anything was read.
func (c *cache) keep(a asked, f *found) { c.known.Set(a.key(), f) }

// seen counts the writes an answer depends on: to the number or address, to numbers that end like it, and to what the
// organisation has connected.
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

// drop ends answers that writes made wrong.
func (c *cache) drop(keys []key) {
	for _, k := range keys {
		c.counter(k).Add(1)
	}
}

func (c *cache) close() { c.known.StopAllGoroutines() }

// Reconnected ends every cached answer of an organisation: what it has connected has changed.
func (s *Service) Reconnected(org string) { s.cache.drop([]key{{org: org}}) }
