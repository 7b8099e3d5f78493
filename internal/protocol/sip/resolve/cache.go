package resolve

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
	host     Host
	resolver Resolver

	mu      sync.Mutex // guards the fields below
	entries map[string]*cacheEntry
}

const (
	maxCacheEntries = 4096
	minTTL          = 5 * time.Second
	maxTTL          = time.Hour
	queryTimeout    = 5 * time.Second // bounds one lookup, all servers together
)

// cacheEntry is one answer, or the query in progress. ready closes once the other fields are set.
type cacheEntry struct {
	ready chan struct{}
	until time.Duration
	value any
	err   error
}

func newDNSCache(host Host, from Resolver) *dnsCache {
	return &dnsCache{host: host, resolver: from, entries: make(map[string]*cacheEntry)}
}

func (c *dnsCache) naptr(ctx context.Context, domain string) ([]NAPTR, error) {
	return cachedLookup(ctx, c, "N"+domain, func(ctx context.Context) ([]NAPTR, time.Duration, error) {
		return c.resolver.NAPTR(ctx,
			domain)
	})
}

func (c *dnsCache) srv(ctx context.Context, name string) ([]SRV, error) {
	return cachedLookup(ctx, c, "S"+name, func(ctx context.Context) ([]SRV, time.Duration, error) { return c.resolver.SRV(ctx, name) })
}

func (c *dnsCache) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	return cachedLookup(ctx, c, "A"+host, func(ctx context.Context) ([]netip.Addr, time.Duration, error) {
		return c.resolver.Addresses(ctx,
			host)
	})
}

// cachedLookup returns the cached answer under key, or queries. The query continues if its caller gives up, because
// other callers may wait for it.
func cachedLookup[T any](ctx context.Context, c *dnsCache, key string, ask func(context.Context) ([]T, time.Duration, error)) ([]T, error) {
	k, first := c.entry(key)
	if first {
		c.host.Go(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, queryTimeout)
			defer cancel()
			value, ttl, err := ask(ctx)
			c.store(key, k, value, ttl, err)
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
func (c *dnsCache) entry(key string) (k *cacheEntry, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.host.Elapsed()
	if k = c.entries[key]; k != nil && (!k.done() || now < k.until) {
		return k, false
	}
	if len(c.entries) >= maxCacheEntries {
		clear(c.entries)
	}
	k = &cacheEntry{ready: make(chan struct{})}
	c.entries[key] = k
	return k, true
}

func (k *cacheEntry) done() bool {
	select {
	case <-k.ready:
		return true
	default:
		return false
	}
}

func (c *dnsCache) store(key string, k *cacheEntry, value any, ttl time.Duration, err error) {
	k.value, k.err = value, err
	k.until = c.host.Elapsed() + min(max(ttl, minTTL), maxTTL)
	close(k.ready)
	if err != nil { // errors are not cached
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.entries[key] == k {
			delete(c.entries, key)
		}
	}
}
