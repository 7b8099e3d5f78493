package smppserver

import (
	"net/netip"
	"sync"
	"time"
)

// BanConfig configures the bans of addresses after wrong passwords. Each further ban within a day is twice as long.
type BanConfig struct {
	MaxFailures      int           // wrong passwords within a minute before the first ban; default 10
	FirstBan, MaxBan time.Duration // duration of the first ban and the longest; defaults 5 minutes and 24 hours
}

const (
	maxSources  = 65536
	forgetAfter = 24 * time.Hour // time after a ban, and without wrong passwords, after which an address counts as new
)

// loginGuard counts wrong passwords by address; IPv6 addresses by /64.
type loginGuard struct {
	cfg     BanConfig
	now     func() time.Time
	mu      sync.Mutex // guards sources
	sources map[netip.Prefix]*sourceRecord
}

type sourceRecord struct {
	windowStart, bannedUntil time.Time // start of the counted minute; end of the ban
	failures, bans           int
}

func (g *loginGuard) init(b BanConfig, now func() time.Time) {
	g.cfg, g.now, g.sources = b, now, map[netip.Prefix]*sourceRecord{}
	if g.cfg.MaxFailures == 0 {
		g.cfg.MaxFailures = 10
	}
	if g.cfg.FirstBan == 0 {
		g.cfg.FirstBan = 5 * time.Minute
	}
	if g.cfg.MaxBan == 0 {
		g.cfg.MaxBan = 24 * time.Hour
	}
}

func sourcePrefix(host string) netip.Prefix {
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
func (g *loginGuard) allowed(host string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.sources[sourcePrefix(host)]
	return x == nil || !g.now().Before(x.bannedUntil)
}

// recordFailure counts a wrong password. It returns the remaining duration of the ban; 0 if the address is not
// banned.
func (g *loginGuard) recordFailure(host string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, p := g.now(), sourcePrefix(host)
	x := g.sources[p]
	if x == nil || now.Sub(x.bannedUntil) > forgetAfter && now.Sub(x.windowStart) > forgetAfter {
		g.evict(now)
		x = &sourceRecord{windowStart: now}
		g.sources[p] = x
	}
	if now.Sub(x.windowStart) >= time.Minute {
		x.windowStart, x.failures = now, 0
	}
	if x.failures++; x.failures < g.cfg.MaxFailures || now.Before(x.bannedUntil) {
		return max(0, x.bannedUntil.Sub(now))
	}
	d := min(g.cfg.FirstBan<<min(x.bans, 20), g.cfg.MaxBan)
	x.failures, x.bannedUntil = 0, now.Add(d)
	x.bans++
	return d
}

// evict removes addresses that are not banned, once there are too many.
func (g *loginGuard) evict(now time.Time) {
	if len(g.sources) < maxSources {
		return
	}
	for p, x := range g.sources {
		if now.After(x.bannedUntil) {
			delete(g.sources, p)
		}
		if len(g.sources) < maxSources*3/4 {
			return
		}
	}
}
