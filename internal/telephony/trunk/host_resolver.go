package trunk

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Resolver looks up names in DNS; *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

// hostAddresses holds the addresses of the trunks' host names, because a carrier's calls come from these addresses.
type hostAddresses struct {
	mu     sync.Mutex // guards byHost
	byHost map[string]map[netip.Addr]time.Time
}

const (
	resolveInterval      = time.Minute
	resolveTimeout       = 5 * time.Second
	addressTTL           = 30 * time.Minute // after the address was last returned, because some names return other addresses each time
	addressTTLWithoutDNS = 24 * time.Hour   // while DNS does not answer
	maxAddressesPerHost  = 64               // per host
)

// RunHostResolver resolves the hosts of trunks at once, after each change of a trunk and every minute, until the
// context ends.
func (s *Service) RunHostResolver(ctx context.Context, r Resolver) {
	changes := s.bus.Subscribe(Changed, 16)
	defer changes.Close()
	tick := time.NewTicker(resolveInterval)
	defer tick.Stop()
	for {
		s.ResolveHosts(ctx, r)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case m := <-changes.C:
			if m == sourceTableKey {
				continue
			}
		}
		drain(changes.C)
	}
}

func drain[T any](c <-chan T) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}

// sourceTableKey is the cache key of the source table. It is published on Changed if only addresses have changed and
// no trunk has.
const sourceTableKey = "all"

// ResolveHosts resolves the hosts of all enabled trunks once.
func (s *Service) ResolveHosts(ctx context.Context, r Resolver) {
	all, err := enabled(ctx, s.db.Read(ctx))
	if err != nil {
		return // the next round retries
	}
	hosts := map[string]bool{}
	for _, t := range all {
		if _, err := netip.ParseAddr(strings.Trim(t.Host, "[]")); err != nil {
			hosts[strings.ToLower(t.Host)+" "+t.Transport] = true
		}
	}
	changed := s.hostAddresses.retain(hosts)
	for key := range hosts {
		host, transport, _ := strings.Cut(key, " ")
		found, err := lookupHost(ctx, r, host, transport)
		if s.hostAddresses.update(key, found, err == nil, s.now()) {
			changed = true
		}
	}
	if changed {
		s.bus.Publish(Changed, sourceTableKey)
	}
}

// lookupHost returns the addresses of a host and of the servers in its SRV records (RFC 3263 §4.2). It fails only if
// no address was found.
func lookupHost(ctx context.Context, r Resolver, host, transport string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	service, proto := "sip", transport
	if transport == "tls" {
		service, proto = "sips", "tcp"
	}
	names := []string{host}
	if _, records, err := r.LookupSRV(ctx, service, proto, host); err == nil {
		for _, srv := range records[:min(len(records), 16)] {
			names = append(names, strings.TrimSuffix(srv.Target, "."))
		}
	}
	var all []netip.Addr
	var failed error
	for _, name := range names {
		found, err := r.LookupNetIP(ctx, "ip", name)
		if err != nil {
			failed = err
		}
		all = append(all, found...)
	}
	if len(all) > 0 {
		failed = nil
	}
	return all, failed
}

// update stores the addresses found for a host and removes expired ones. changed reports whether the addresses differ
// from before.
func (n *hostAddresses) update(key string, found []netip.Addr, answered bool, now time.Time) (changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.byHost[key]
	if of == nil {
		of = map[netip.Addr]time.Time{}
		n.byHost[key] = of
	}
	for _, a := range found {
		if a = a.Unmap().WithZone(""); a.IsMulticast() || a.IsUnspecified() {
			continue
		}
		if _, known := of[a]; !known {
			if len(of) >= maxAddressesPerHost {
				continue
			}
			changed = true
		}
		of[a] = now
	}
	keep := addressTTLWithoutDNS
	if answered {
		keep = addressTTL
	}
	for a, seen := range of {
		if now.Sub(seen) > keep {
			delete(of, a)
			changed = true
		}
	}
	return changed
}

// retain removes hosts that no trunk has any more.
func (n *hostAddresses) retain(keys map[string]bool) (changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key := range n.byHost {
		if !keys[key] {
			delete(n.byHost, key)
			changed = true
		}
	}
	return changed
}

// addresses returns the addresses of a trunk's host, sorted.
func (n *hostAddresses) addresses(t Trunk) []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []netip.Addr
	for a := range n.byHost[strings.ToLower(t.Host)+" "+t.Transport] {
		all = append(all, a)
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}
