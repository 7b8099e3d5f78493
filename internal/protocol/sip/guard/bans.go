package guard

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Bans of source addresses.

// Ban is a source that gets no answer for a while. Its calls in progress continue.
type Ban struct {
	Source netip.Addr // for IPv6 the first address of the /64 network
	Until  time.Time
	Why    string
	Times  int // number of bans in a row; each is twice as long as the one before
}

// banTable holds the sources that are banned or were recently.
type banTable struct {
	maxDuration time.Duration
	minDuration time.Duration
	active      atomic.Int64 // entries: none is the common case

	mu      sync.RWMutex // guards the fields below
	entries map[netip.Addr]banEntry
}

type banEntry struct {
	until time.Duration
	why   string
	times int
}

const (
	maxBans = 65536
	// banMemory is how long after a ban its source counts as new again.
	banMemory = 24 * time.Hour
)

func (b *banTable) init(l Limits) {
	b.minDuration, b.maxDuration = l.BanFor, l.MaxBan
	b.entries = make(map[netip.Addr]banEntry)
}

func (b *banTable) isBanned(a netip.Addr, now time.Duration) bool {
	if b.active.Load() == 0 {
		return false
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return now < b.entries[a].until
}

// add bans a source. With grow the ban takes twice as long as the last one.
func (b *banTable) add(a netip.Addr, why string, grow bool, now time.Duration) banEntry {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, ok := b.entries[a]
	if ok && now < old.until {
		return old
	}
	if ok && now >= old.until+banMemory {
		old = banEntry{}
	}
	if !ok && len(b.entries) >= maxBans {
		b.evict(now)
	}
	if grow {
		old.times++
	}
	old.why = why
	old.until = now + min(b.minDuration<<min(max(old.times-1, 0), 20), max(b.maxDuration, b.minDuration))
	b.entries[a] = old
	b.active.Store(int64(len(b.entries)))
	return old
}

// evict removes bans that ended long ago. If there are none, it removes the ban that ends first
// among a few.
func (b *banTable) evict(now time.Duration) {
	var first netip.Addr
	seen := 0
	for a, x := range b.entries {
		if now >= x.until+banMemory {
			delete(b.entries, a)
			continue
		}
		if !first.IsValid() || x.until < b.entries[first].until {
			first = a
		}
		if seen++; seen == 64 {
			break
		}
	}
	if len(b.entries) >= maxBans {
		delete(b.entries, first)
	}
}

func (b *banTable) remove(a netip.Addr) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.entries[a]
	delete(b.entries, a)
	b.active.Store(int64(len(b.entries)))
	return ok
}

func (b *banTable) list(now time.Duration, start time.Time) (out []Ban) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for a, x := range b.entries {
		if now < x.until {
			out = append(out, Ban{Source: a, Until: start.Add(x.until), Why: x.why, Times: max(x.times, 1)})
		}
	}
	slices.SortFunc(out, func(a, b Ban) int { return a.Until.Compare(b.Until) })
	return out
}
