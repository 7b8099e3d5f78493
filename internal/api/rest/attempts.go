package rest

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// This file slows down who tries credentials. An address may send so many requests without a valid credential in a minute; each
// credential that nobody knows counts more than the one before it. What was refused meanwhile costs no look into the database.
// Credentials that were good a few minutes ago are looked at all the same, so that nobody is locked out by a neighbour.

const (
	strikesKept  = 15 * time.Minute // how long wrong credentials are remembered
	strikesFree  = 5                // of them count no more than other requests
	dearest      = 64               // what one counts at most
	goodKept     = 10 * time.Minute // how long a good credential is remembered
	manyTimesAll = 1 << 30
)

// held is the refusal of a credential that is not looked at; nil where it is.
func (s *Server) held(token string, source netip.Addr) *op.Error {
	c := s.Corridor
	if c.Limiter == nil || c.AttemptsPerMinute <= 0 {
		return nil
	}
	all, _ := c.Limiter.Take(op.ClientKey(source), 0, op.AttemptPolicy(c.AttemptsPerMinute))
	if all[0].Left > 0 || s.good(token, 0) {
		return nil
	}
	all[0].Violated = true
	return op.TooMany(all)
}

// good remembers (cost 1) or knows (cost 0) that a credential was good.
func (s *Server) good(token string, cost int) bool {
	sum := sha256.Sum256([]byte(token))
	all, _ := s.Corridor.Limiter.Take(string(sum[:]), cost, access.Policy{Name: "good", Quota: manyTimesAll, Window: goodKept})
	return all[0].Left < manyTimesAll
}

// passed notes a good credential.
func (s *Server) passed(token string) {
	if s.Corridor.Limiter != nil && s.Corridor.AttemptsPerMinute > 0 {
		s.good(token, 1)
	}
}

// struck counts a refused credential; the more of its kind there were, the more it costs.
func (s *Server) struck(source netip.Addr, e *op.Error) {
	c := s.Corridor
	if c.Limiter == nil || c.AttemptsPerMinute <= 0 || e.Status() >= 500 {
		return
	}
	cost := 1
	if e.Code == "unauthenticated" {
		all, _ := c.Limiter.Take("strikes "+op.ClientKey(source), 1, access.Policy{Name: "strikes", Quota: manyTimesAll, Window: strikesKept})
		cost = price(manyTimesAll - all[0].Left)
	}
	policy := op.AttemptPolicy(c.AttemptsPerMinute)
	standing, _ := c.Limiter.Take(op.ClientKey(source), 0, policy)
	c.Limiter.Take(op.ClientKey(source), min(cost, standing[0].Left), policy)
}

// price is what the n-th wrong credential counts: 1, 1, 1, 1, 1, 2, 4, 8, …
func price(n int) int {
	if n <= strikesFree {
		return 1
	}
	return min(dearest, 1<<min(n-strikesFree, 16))
}

// refused keeps why a request has no principal, and whose credential it was where that is known.
func refused(ctx context.Context, e *op.Error, p access.Principal) context.Context {
	if p.OrgID != "" {
		ctx = op.WithRefusedPrincipal(ctx, p)
	}
	return op.WithRefusal(ctx, e)
}
