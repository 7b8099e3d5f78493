package rest

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// Throttling of credential guessing. An address has a quota of requests without a valid credential per minute; each
// further unknown credential counts more than the one before. While an address is throttled, credentials are refused
// without a database read. Credentials that were valid within the last minutes are still checked, so that other users
// behind the same address are not locked out.

const (
	failureWindow  = 15 * time.Minute // lifetime of a counted wrong credential
	freeFailures   = 5                // wrong credentials that count like other requests
	maxFailureCost = 64               // highest cost of one wrong credential
	validWindow    = 10 * time.Minute // lifetime of a remembered valid credential
	unlimitedQuota = 1 << 30
)

// throttled returns the refusal of a credential that is not checked; nil if it is to be checked.
func (s *Server) throttled(token string, source netip.Addr) *op.Error {
	c := s.cfg.Pipeline
	if c.Limiter == nil || c.AttemptsPerMinute <= 0 {
		return nil
	}
	all, _ := c.Limiter.Take(op.ClientKey(source), 0, op.AttemptPolicy(c.AttemptsPerMinute))
	if all[0].Left > 0 || s.recentlyValid(token, 0) {
		return nil
	}
	all[0].Violated = true
	return op.TooMany(all)
}

// recentlyValid remembers a valid credential (cost 1), or reports whether it was valid recently (cost 0).
func (s *Server) recentlyValid(token string, cost int) bool {
	sum := sha256.Sum256([]byte(token))
	all, _ := s.cfg.Pipeline.Limiter.Take(string(sum[:]), cost, access.Policy{Name: "good", Quota: unlimitedQuota, Window: validWindow})
	return all[0].Left < unlimitedQuota
}

// recordValid remembers a valid credential.
func (s *Server) recordValid(token string) {
	if s.cfg.Pipeline.Limiter != nil && s.cfg.Pipeline.AttemptsPerMinute > 0 {
		s.recentlyValid(token, 1)
	}
}

// recordFailure counts a refused credential. The cost of guesses grows with the number of unknown credentials from the address. An ended
// session is no guess: a page that is left open sends it again and again.
func (s *Server) recordFailure(source netip.Addr, e *op.Error, guess bool) {
	c := s.cfg.Pipeline
	if c.Limiter == nil || c.AttemptsPerMinute <= 0 || e.Status() >= 500 {
		return
	}
	cost := 1
	if guess && e.Code == "unauthenticated" {
		all, _ := c.Limiter.Take("strikes "+op.ClientKey(source), 1, access.Policy{Name: "strikes", Quota: unlimitedQuota,
			Window: failureWindow})
		cost = failureCost(unlimitedQuota - all[0].Left)
	}
	s.countFailures(source, cost)
}

// countFailures counts refused requests of an address, as far as its quota goes.
func (s *Server) countFailures(source netip.Addr, cost int) {
	c := s.cfg.Pipeline
	if c.Limiter == nil || c.AttemptsPerMinute <= 0 {
		return
	}
	policy := op.AttemptPolicy(c.AttemptsPerMinute)
	standing, _ := c.Limiter.Take(op.ClientKey(source), 0, policy)
	c.Limiter.Take(op.ClientKey(source), min(cost, standing[0].Left), policy)
}

// failureCost returns the cost of the n-th wrong credential: 1, 1, 1, 1, 1, 2, 4, 8, …
func failureCost(n int) int {
	if n <= freeFailures {
		return 1
	}
	return min(maxFailureCost, 1<<min(n-freeFailures, 16))
}

// withRefusal stores the reason for a missing principal, and the owner of the credential if it is known.
func withRefusal(ctx context.Context, e *op.Error, p access.Principal) context.Context {
	if p.OrgID != "" {
		ctx = op.WithRefusedPrincipal(ctx, p)
	}
	return op.WithRefusal(ctx, e)
}
