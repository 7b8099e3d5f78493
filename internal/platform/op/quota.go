package op

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"soniq/internal/platform/access"
)

// This file counts requests against the quotas of their credential, and says so in every answer
// (draft-ietf-httpapi-ratelimit-headers-11).

// A Class says which quota a request uses up.
type Class string

// The classes. What an operation belongs to follows from its declaration: reads and writes, unless Counted says otherwise.
const (
	Reads    Class = "reads"
	Writes   Class = "writes"
	Searches Class = "searches"
)

// Counted puts the operation into another class than its method says.
func (o Operation) Counted(c Class) Operation { o.class = c; return o }

// Class is the quota the operation uses up.
func (o Operation) Class() Class {
	switch {
	case o.class != "":
		return o.class
	case o.Writes():
		return Writes
	}
	return Reads
}

// Strangers are requests without a valid credential: how many an address may make in a minute, of operations that are open to
// all, and in vain.
const publicPerMinute = 600

// Charge counts a request against the quotas of who makes it, a credential or an address, and writes what is left into the
// header. The error is rate_limited where it does not fit.
func (c *Corridor) Charge(ctx context.Context, h http.Header, class Class, open bool) *Error {
	if c.Limiter == nil {
		return nil
	}
	p, known := access.From(ctx)
	var all []access.Standing
	ok := true
	switch {
	case known:
		all, ok = c.Limiter.Take(p.Home()+p.KeyID, 1, policies(class, p.Limits)...)
	case c.Attempts <= 0:
		return nil
	case open:
		all, ok = c.Limiter.Take(Address(Source(ctx)), 1, access.Policy{Name: "public", Quota: publicPerMinute, Window: time.Minute})
	default:
		all, ok = c.Limiter.Take(Address(Source(ctx)), c.unpaid(ctx), AttemptPolicy(c.Attempts))
	}
	Tell(h, all)
	if ok {
		return nil
	}
	return TooMany(all)
}

// unpaid is 0 for a request whose credential was counted as it was refused.
func (c *Corridor) unpaid(ctx context.Context) int {
	if ctx.Value(refusalKey{}) != nil {
		return 0
	}
	return 1
}

// AttemptPolicy is how many requests without a valid credential an address may make.
func AttemptPolicy(perMinute int) access.Policy {
	return access.Policy{Name: "attempts", Quota: perMinute, Window: time.Minute}
}

// Address names who asks from an address: of IPv6 the network of 64 bits, for a single machine has all of it.
func Address(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		network, _ := a.Prefix(64)
		return network.String()
	}
	return a.String()
}

// policies are the quotas of a class. A search is counted by itself alone, for it may be made oftener than other reads.
func policies(class Class, l access.Limits) []access.Policy {
	burst := access.Policy{Name: "burst", Quota: l.Burst, Window: time.Second}
	switch class {
	case Searches:
		return []access.Policy{{Name: string(Searches), Quota: l.SearchesPerSecond, Window: time.Second}}
	case Writes:
		return []access.Policy{{Name: string(Writes), Quota: l.WritesPerMinute, Window: time.Minute}, burst}
	}
	return []access.Policy{{Name: string(Reads), Quota: l.ReadsPerMinute, Window: time.Minute}, burst}
}

// Tell writes how the policies stand: both fields of the draft, and the three older ones for the policy that is violated, or else
// the first.
func Tell(h http.Header, all []access.Standing) {
	if len(all) == 0 {
		return
	}
	policy, standing := make([]byte, 0, 64), make([]byte, 0, 64)
	for i, s := range all {
		if i > 0 {
			policy, standing = append(policy, ", "...), append(standing, ", "...)
		}
		policy = append(append(append(policy, '"'), s.Name...), `";q=`...)
		policy = append(strconv.AppendInt(policy, int64(s.Quota), 10), ";w="...)
		policy = strconv.AppendInt(policy, int64(s.Window/time.Second), 10)
		standing = append(append(append(standing, '"'), s.Name...), `";r=`...)
		standing = append(strconv.AppendInt(standing, int64(s.Left), 10), ";t="...)
		standing = strconv.AppendInt(standing, seconds(s.Reset), 10)
	}
	h.Set("Ratelimit-Policy", string(policy))
	h.Set("Ratelimit", string(standing))
	shown := all[max(0, slices.IndexFunc(all, func(s access.Standing) bool { return s.Violated }))]
	h.Set("Ratelimit-Limit", strconv.Itoa(shown.Quota))
	h.Set("Ratelimit-Remaining", strconv.Itoa(shown.Left))
	h.Set("Ratelimit-Reset", strconv.FormatInt(seconds(shown.Reset), 10))
}

func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// TooMany is the refusal of a request that did not fit into some of the policies.
func TooMany(all []access.Standing) *Error {
	var names []string
	var wait time.Duration
	for _, s := range all {
		if s.Violated {
			names, wait = append(names, s.Name), max(wait, s.Reset)
		}
	}
	return TooFast("more requests than allowed: "+strings.Join(names, ", "), int(seconds(wait)), names...)
}

// TooFast is rate_limited: to be repeated after some seconds, with the policies that were violated.
func TooFast(detail string, retryAfter int, violated ...string) *Error {
	e := Unavailable("rate_limited", detail, strconv.Itoa(max(1, retryAfter)))
	e.Extra = map[string]any{"violated-policies": violated}
	return e
}

type sourceKey struct{}

// WithSource keeps the address a request came from.
func WithSource(ctx context.Context, a netip.Addr) context.Context {
	return context.WithValue(ctx, sourceKey{}, a)
}

// Source is the address the request of the context came from.
func Source(ctx context.Context) netip.Addr {
	a, _ := ctx.Value(sourceKey{}).(netip.Addr)
	return a
}
