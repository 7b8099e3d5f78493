package smppserver

import (
	"net/netip"
	"sync"
	"time"
)

// BanConfig configures the bans of addresses after wrong passwords. Each further ban within a day is twice as long.
type Bans struct {
	Wrong       int           // wrong passwords within a minute before the first ban; default 10
	Least, Most time.Duration // duration of the first ban and the longest; defaults 5 minutes and 24 hours
}

const (
	mostSources = 65536
	calm        = 24 * time.Hour // time after a ban, and without wrong passwords, after which an address counts as new
)

// loginGuard counts wrong passwords by address; IPv6 addresses by /64.
type guard struct {
	Bans
	now func() time.Time
	mu  sync.Mutex // guards sources
	all map[netip.Prefix]*suspect
}

type suspect struct {
	since, until time.Time // start of the counted minute; end of the ban
	wrong, times int
}

func (g *guard) init(b Bans, now func() time.Time) {
	g.Bans, g.now, g.all = b, now, map[netip.Prefix]*suspect{}
	if g.Wrong == 0 {
		g.Wrong = 10
	}
	if g.Least == 0 {
		g.Least = 5 * time.Minute
	}
	if g.Most == 0 {
		g.Most = 24 * time.Hour
	}
}

func network(host string) netip.Prefix {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	a, bits := a.Unmap().WithZone(""), 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p
}

// allowed reports whether a host may connect.
func (g *guard) admits(host string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.all[network(host)]
	return x == nil || !g.now().Before(x.until)
}

// recordFailure counts a wrong password. It returns the remaining duration of the ban; 0 if the address is not
// banned.
func (g *guard) failed(host string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, p := g.now(), network(host)
	x := g.all[p]
	if x == nil || now.Sub(x.until) > calm && now.Sub(x.since) > calm {
		g.makeRoom(now)
		x = &suspect{since: now}
		g.all[p] = x
	}
	if now.Sub(x.since) >= time.Minute {
		x.since, x.wrong = now, 0
	}
	if x.wrong++; x.wrong < g.Wrong || now.Before(x.until) {
		return max(0, x.until.Sub(now))
	}
	d := min(g.Least<<min(x.times, 20), g.Most)
	x.wrong, x.until = 0, now.Add(d)
	x.times++
	return d
}

// evict removes addresses that are not banned, once there are too many.
func (g *guard) makeRoom(now time.Time) {
	if len(g.all) < mostSources {
		return
	}
	for p, x := range g.all {
		if now.After(x.until) {
			delete(g.all, p)
		}
		if len(g.all) < mostSources*3/4 {
			return
		}
	}
}
