package sip

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// Cache of DNS answers.

// dnsCache caches the answers of a Resolver for their TTL, within bounds. Concurrent lookups of the same name share
// one query.
type dnsCache struct {
	server *Server
	from   Resolver

	mu   sync.Mutex // guards the fields below
	kept map[string]*kept
}

const (
	maxKept = 4096
	minTTL  = 5 * time.Second
	maxTTL  = time.Hour
)

// cacheEntry is one answer, or the query in progress. ready closes once the other fields are set.
type kept struct {
	ready chan struct{}
	until time.Duration
	value any
	err   error
}

func newDNSCache(s *Server) *dnsCache {
	from := s.config.Resolver
	if from == nil {
		from = NewResolver()
	}
	return &dnsCache{server: s, from: from, kept: make(map[string]*kept)}
}

func (c *dnsCache) naptr(ctx context.Context, domain string) ([]NAPTR, error) {
	return cached(ctx, c, "N"+domain, func(ctx context.Context) ([]NAPTR, time.Duration, error) { return c.from.NAPTR(ctx, domain) })
}

func (c *dnsCache) srv(ctx context.Context, name string) ([]SRV, error) {
	return cached(ctx, c, "S"+name, func(ctx context.Context) ([]SRV, time.Duration, error) { return c.from.SRV(ctx, name) })
}

func (c *dnsCache) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	return cached(ctx, c, "A"+host, func(ctx context.Context) ([]netip.Addr, time.Duration, error) { return c.from.Addresses(ctx, host) })
}

// cachedLookup returns the cached answer under key, or queries. The query continues if its caller gives up, because
// other callers may wait for it.
func cached[T any](ctx context.Context, c *dnsCache, key string, ask func(context.Context) ([]T, time.Duration, error)) ([]T, error) {
	k, first := c.entry(key)
	if first {
		c.server.workers.Go(func() {
			ctx, cancel := context.WithTimeout(c.server.ctx, lookupLimit)
			defer cancel()
			value, ttl, err := ask(ctx)
			c.answered(key, k, value, ttl, err)
		})
	}
	select {
	case <-k.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	all, _ := k.value.([]T)
	return all, k.err
}

// entry returns the valid answer, or a new entry for which the caller must query.
func (c *dnsCache) entry(key string) (k *kept, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.server.clock()
	if k = c.kept[key]; k != nil && (!k.done() || now < k.until) {
		return k, false
	}
	if len(c.kept) >= maxKept {
		clear(c.kept)
	}
	k = &kept{ready: make(chan struct{})}
	c.kept[key] = k
	return k, true
}

func (k *kept) done() bool {
	select {
	case <-k.ready:
		return true
	default:
		return false
	}
}

func (c *dnsCache) answered(key string, k *kept, value any, ttl time.Duration, err error) {
	k.value, k.err = value, err
	k.until = c.server.clock() + min(max(ttl, minTTL), maxTTL)
	close(k.ready)
	if err != nil { // errors are not cached
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.kept[key] == k {
			delete(c.kept, key)
		}
	}
}
