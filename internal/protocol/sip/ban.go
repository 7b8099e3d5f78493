package sip

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Ban is a source that gets no answer for a while. Calls it has stay.
type Ban struct {
	Source netip.Addr // of IPv6 the /64 network's first address
	Until  time.Time
	Why    string
	Times  int // how many bans in a row; each is twice as long as the one before
}

// bans are the sources that are banned, and those that were not long ago.
type bans struct {
	most   time.Duration
	least  time.Duration
	active atomic.Int64 // entries: none is the common case

	mu  sync.RWMutex // guards what follows
	all map[netip.Addr]ban
}

type ban struct {
	until time.Duration
	why   string
	times int
}

const (
	maxBans = 65536
	// quiet is how long after a ban its source counts as new again.
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

// add bans a source. With grow it takes twice as long as the last time.
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

// makeRoom forgets who was quiet for long, or else one of those whose ban ends
// first of a few.
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

// Bans are the sources banned now, the one that ends first at the front.
func (s *Server) Bans() []Ban { return s.guard.bans.list(s.clock(), s.start) }

// Unban ends a ban and forgets that it ever was; false when there was none.
func (s *Server) Unban(source netip.Addr) bool { return s.guard.bans.remove(network(source)) }

// Why a source is banned.
const (
	whyGuessing = "too many wrong passwords"
	whyProbing  = "too many requests that came to nothing"
	whyScanner  = "the program of a scanner"
)

// suspect counts a request that came to nothing. It never waits.
func (s *Server) suspect(a netip.Addr, t Transport) {
	if s.guard.probe(a, s.clock()) {
		s.spawn(func() { s.punish(a, whyProbing, t.stream()) })
	}
}

// caught bans a source that shows to be a scanner.
func (s *Server) caught(f flow) {
	a := f.addr.Addr()
	if now := s.clock(); !s.guard.trusted(a, now) && !s.guard.banned(a, now) {
		s.spawn(func() { s.punish(a, whyScanner, f.reliable()) })
	}
}

// punish bans a source unless it is a trunk's. Only where the address is proved
// to be the sender's does the time grow: datagrams can be forged to have
// somebody else banned, and then it shall not be for long.
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
