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

// Rate limits per credential or address, and their header fields in every response
// (draft-ietf-httpapi-ratelimit-headers-11).

// Class is the quota that a request counts against.
type Class string

// Quota classes. The class follows from the declaration, reads or writes, unless CountsAgainst sets another one.
const (
	Reads    Class = "reads"
	Writes   Class = "writes"
	Searches Class = "searches"
)

// CountsAgainst sets the quota class of the operation.
func (o Operation) CountsAgainst(c Class) Operation { o.class = c; return o }

// Class returns the quota class of the operation.
func (o Operation) Class() Class {
	switch {
	case o.class != "":
		return o.class
	case o.Writes():
		return Writes
	}
	return Reads
}

// publicPerMinute limits requests without a credential to public operations, per address and minute.
const publicPerMinute = 600

// Charge counts a request against the quotas of its credential or address, and writes the remaining quota into the
// header. It returns rate_limited if a quota is exceeded. open marks public operations.
func (c *Pipeline) Charge(ctx context.Context, h http.Header, class Class, open bool) *Error {
	if c.Limiter == nil {
		return nil
	}
	p, known := access.From(ctx)
	var all []access.QuotaState
	var ok bool
	switch {
	case known:
		all, ok = c.Limiter.Take(p.Home()+p.KeyID, 1, policies(class, p.Limits)...)
	case c.AttemptsPerMinute <= 0:
		return nil
	case open:
		all, ok = c.Limiter.Take(ClientKey(ClientAddress(ctx)), 1, access.Policy{Name: "public", Quota: publicPerMinute,
			Window: time.Minute})
	default:
		all, ok = c.Limiter.Take(ClientKey(ClientAddress(ctx)), c.attemptCost(ctx), AttemptPolicy(c.AttemptsPerMinute))
	}
	WriteRateLimit(h, all)
	if ok {
		return nil
	}
	return TooMany(all)
}

// attemptCost returns 0 for a request whose refused credential was already counted, otherwise 1.
func (c *Pipeline) attemptCost(ctx context.Context) int {
	if ctx.Value(refusalKey{}) != nil {
		return 0
	}
	return 1
}

// AttemptPolicy returns the limit of requests without a valid credential per address.
func AttemptPolicy(perMinute int) access.Policy {
	return access.Policy{Name: "attempts", Quota: perMinute, Window: time.Minute}
}

// ClientKey returns the key of a client address. For IPv6 it is the /64 network, because one machine usually has all
// of it.
func ClientKey(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		network, _ := a.Prefix(64)
		return network.String()
	}
	return a.String()
}

// policies returns the quotas of a class. Searches have a quota of their own only, because they may be more frequent
// than other reads.
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

// WriteRateLimit writes the state of the policies: both header fields of the draft, and the three older ones for the
// violated policy or otherwise the first.
func WriteRateLimit(h http.Header, all []access.QuotaState) {
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
	shown := all[max(0, slices.IndexFunc(all, func(s access.QuotaState) bool { return s.Violated }))]
	h.Set("Ratelimit-Limit", strconv.Itoa(shown.Quota))
	h.Set("Ratelimit-Remaining", strconv.Itoa(shown.Left))
	h.Set("Ratelimit-Reset", strconv.FormatInt(seconds(shown.Reset), 10))
}

func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// TooMany returns the error for a request that exceeded a policy.
func TooMany(all []access.QuotaState) *Error {
	var names []string
	var wait time.Duration
	for _, s := range all {
		if s.Violated {
			names, wait = append(names, s.Name), max(wait, s.Reset)
		}
	}
	return RateLimited("more requests than allowed: "+strings.Join(names, ", "), int(seconds(wait)), names...)
}

// RateLimited returns the error rate_limited with Retry-After in seconds and the violated policies.
func RateLimited(detail string, retryAfter int, violated ...string) *Error {
	e := Unavailable("rate_limited", detail, strconv.Itoa(max(1, retryAfter)))
	e.Extra = map[string]any{"violated-policies": violated}
	return e
}

type clientAddressKey struct{}

// WithClientAddress stores the client address of a request.
func WithClientAddress(ctx context.Context, a netip.Addr) context.Context {
	return context.WithValue(ctx, clientAddressKey{}, a)
}

// ClientAddress returns the client address of the context's request; zero if unknown.
func ClientAddress(ctx context.Context) netip.Addr {
	a, _ := ctx.Value(clientAddressKey{}).(netip.Addr)
	return a
}
