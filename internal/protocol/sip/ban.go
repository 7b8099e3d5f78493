package sip

import (
	"context"
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
type bans struct {
	most   time.Duration
	least  time.Duration
	active atomic.Int64 // entries: none is the common case

	mu  sync.RWMutex // guards the fields below
	all map[netip.Addr]ban
}

type ban struct {
	until time.Duration
	why   string
	times int
}

const (
	maxBans = 65536
	// banMemory is how long after a ban its source counts as new again.
	quiet = 24 * time.Hour
)

func (b *bans) init(l Limits) {
	b.least, b.most = l.BanFor, l.BanMost
	b.all = make(map[netip.Addr]ban)
}

func (b *bans) has(a netip.Addr, now time.Duration) bool {
	if b.active.Load() == 0 {
		return false
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return now < b.all[a].until
}

// add bans a source. With grow the ban takes twice as long as the last one.
func (b *bans) add(a netip.Addr, why string, grow bool, now time.Duration) ban {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, ok := b.all[a]
	if ok && now < old.until {
		return old
	}
	if ok && now >= old.until+quiet {
		old = ban{}
	}
	if !ok && len(b.all) >= maxBans {
		b.makeRoom(now)
	}
	if grow {
		old.times++
	}
	old.why = why
	old.until = now + min(b.least<<min(max(old.times-1, 0), 20), max(b.most, b.least))
	b.all[a] = old
	b.active.Store(int64(len(b.all)))
	return old
}

// evict removes bans that ended long ago. If there are none, it removes the ban that ends first
// among a few.
func (b *bans) makeRoom(now time.Duration) {
	var first netip.Addr
	seen := 0
	for a, x := range b.all {
		if now >= x.until+quiet {
			delete(b.all, a)
			continue
		}
		if !first.IsValid() || x.until < b.all[first].until {
			first = a
		}
		if seen++; seen == 64 {
			break
		}
	}
	if len(b.all) >= maxBans {
		delete(b.all, first)
	}
}

func (b *bans) remove(a netip.Addr) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.all[a]
	delete(b.all, a)
	b.active.Store(int64(len(b.all)))
	return ok
}

func (b *bans) list(now time.Duration, start time.Time) (out []Ban) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for a, x := range b.all {
		if now < x.until {
			out = append(out, Ban{Source: a, Until: start.Add(x.until), Why: x.why, Times: max(x.times, 1)})
		}
	}
	slices.SortFunc(out, func(a, b Ban) int { return a.Until.Compare(b.Until) })
	return out
}

// Bans returns the sources banned now, the ban that ends first at the front.
func (s *Server) Bans() []Ban { return s.guard.bans.list(s.clock(), s.start) }

// Unban ends a ban and deletes its history. It returns false if there was none.
func (s *Server) Unban(source netip.Addr) bool { return s.guard.bans.remove(network(source)) }

// Reasons of a ban.
const (
	whyGuessing = "too many wrong passwords"
	whyProbing  = "too many requests that failed"
	whyScanner  = "User-Agent of a scanner"
)

// countFutileRequest counts a fruitless request of a source and may ban it. It never waits.
func (s *Server) suspect(a netip.Addr, t Transport) {
	if s.guard.probe(a, s.clock()) {
		s.spawn(func() { s.punish(a, whyProbing, t.stream()) })
	}
}

// banScanner bans a source that was recognized as a scanner.
func (s *Server) caught(f flow) {
	a := f.addr.Addr()
	if now := s.clock(); !s.guard.trusted(a, now) && !s.guard.banned(a, now) {
		s.spawn(func() { s.punish(a, whyScanner, f.reliable()) })
	}
}

// banSource bans a source, unless it belongs to a trunk. The duration grows only if the address is proved to be the
// sender's. Datagrams can be forged to get another source banned, so such a ban stays short.
func (s *Server) punish(a netip.Addr, why string, proved bool) {
	ctx, cancel := context.WithTimeout(s.ctx, lookupLimit)
	defer cancel()
	if _, is := s.config.Accounts.Trunk(ctx, netip.AddrPortFrom(a, 0), UDP); is {
		s.guard.trust(a, s.clock())
		return
	}
	source := network(a)
	b := s.guard.bans.add(source, why, proved, s.clock())
	s.streams.cut(source)
	until := s.start.Add(b.until)
	s.config.Logger.Warn("sip: banned", "source", source, "until", until, "why", why)
	if s.config.OnBan != nil {
		s.config.OnBan(source, until, why)
	}
}
