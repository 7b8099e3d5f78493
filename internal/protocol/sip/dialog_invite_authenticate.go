package sip

import (
	"context"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"
)

// Authentication of incoming INVITEs: trunk by address, account by digest.

// lookupTimeout bounds one lookup of accounts or bindings.
const lookupTimeout = 5 * time.Second

// authenticateInvite identifies the caller and hands the call to the switch. It challenges callers that are neither a
// trunk nor authenticated.
func (s *Server) authenticateInvite(in *Inbound) {
	defer func() {
		if r := recover(); r != nil {
			s.logPanic(r, debug.Stack())
			in.Reject(500, "", 0)
		}
	}()
	trunk, isTrunk := s.trunkOf(in)
	if isTrunk {
		in.TrunkID = trunk
		s.guard.trust(in.Source.Addr(), s.clock())
		if in.conn != nil {
			in.leg.enqueue(in.leg.markTrusted)
		}
		s.deliverInvite(in)
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	acc, stale, ok, err := s.authenticate(ctx, "INVITE", in.From.URI.User, in.authorizations, in.Source.Addr(), in.conn)
	cancel()
	switch {
	case err != nil:
		s.logFailure("look up the account of an INVITE", err)
		in.Reject(503, "", s.limits.RetryAfter)
	case ok:
		in.setAccount(acc)
		in.leg.enqueue(func() {
			in.leg.symmetric = true
			in.leg.markTrusted()
		})
		s.deliverInvite(in)
	default:
		if len(in.authorizations) == 0 {
			s.countFutileRequest(in.Source.Addr(), in.Transport)
		}
		value := s.auth.challenge(acc.digestAlgorithm(), stale)
		s.stats.challenges.Add(1)
		in.leg.enqueue(func() { in.leg.rejectForRetry(407, "Proxy-Authenticate: "+value+"\r\n") })
	}
}

// trunkOf returns the trunk that a call comes from. A call over WebSocket never comes from a trunk, whatever its
// address.
func (s *Server) trunkOf(in *Inbound) (string, bool) {
	if in.Transport.isWebSocket() {
		return "", false
	}
	id, ok := s.config.Accounts.Trunk(s.ctx, in.Source, in.Transport)
	if ok && s.claimsAccount(in) {
		return "", false
	}
	return id, ok
}

// claimsAccount reports whether a call from a trunk's address comes from a user with an account. A phone may share
// the carrier's address (NAT) and must not be taken for the carrier. Only names that are no telephone number are
// looked up.
func (s *Server) claimsAccount(in *Inbound) bool {
	name := in.From.URI.User
	if l, found := s.ownAuthorization(in.authorizations); found {
		name = l.username
	} else if strings.Trim(name, "+0123456789*#-. ") == "" || strings.EqualFold(name, "anonymous") {
		return false
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	defer cancel()
	_, known, err := s.config.Accounts.Credentials(ctx, name)
	return known || err != nil // if the lookup fails, the caller is challenged, and gets 503 if it fails again
}

// markTrusted marks the leg's connection as that of a phone or trunk.
func (l *Leg) markTrusted() {
	if l.flow.conn != nil {
		l.flow.conn.trusted.Store(true)
	}
}

// deliverInvite hands the call to the switch, unless the caller canceled meanwhile.
func (s *Server) deliverInvite(in *Inbound) {
	l := in.leg
	s.calls.Add(1)
	l.countedAsCall.Store(true)
	if l.ended.Load() {
		l.uncountCall()
		return
	}
	leg, refused := s.resolveReplaces(in)
	if refused != 0 {
		in.Reject(refused, "", 0)
		return
	}
	in.Replaces = leg
	s.handler.Invite(s.ctx, in)
}

// digestAlgorithm returns the algorithm of the account's challenge. For the zero account it is MD5, the only one that
// every phone supports.
func (a Account) digestAlgorithm() algorithm {
	if a.WantSHA256 && a.HA1SHA256 != "" {
		return algSHA256
	}
	return algMD5
}

// authenticate checks the credentials of a request. If ok is false, the returned account determines the challenge.
// Whether the user exists changes nothing in the response, except for accounts that require SHA-256.
func (s *Server) authenticate(ctx context.Context, method, from string, logins []string, source netip.Addr, c *conn) (acc Account, stale, ok bool, err error) {
	l, found := s.ownAuthorization(logins)
	if c != nil && c.tokenAccount != "" && !found {
		if acc, ok, err = s.config.Accounts.Credentials(ctx, c.tokenAccount); ok || err != nil {
			return acc, false, ok, err
		}
	}
	name := from
	if found {
		name = l.username
	}
	acc, known, err := s.config.Accounts.Credentials(ctx, name)
	if err != nil || !found {
		return acc, false, false, err
	}
	now, trusted := s.clock(), s.guard.trusted(source, s.clock())
	heard := known && (trusted || s.guessLimiter.mayTry(acc.ID, sourceNetwork(source), now))
	switch s.auth.verify(l, method, acc, heard) {
	case authGood:
		s.guard.trust(source, now)
		s.guessLimiter.recordSuccess(acc.ID, sourceNetwork(source))
		return acc, false, true, nil
	case authStale:
		return acc, true, false, nil
	}
	s.stats.authFailures.Add(1)
	// Only a sender that received our nonce has proved its source address: a forged datagram must not ban another
	// source.
	if !s.auth.isFresh(l.nonce, acc.digestAlgorithm()) {
		s.countFutileRequest(source, UDP)
		return acc, false, false, nil
	}
	if known && !trusted {
		s.guessLimiter.recordFailure(acc.ID, sourceNetwork(source), now)
	}
	if s.guard.countFailedLogin(source, now) {
		s.banSource(source, banReasonGuessing, true)
	}
	return acc, false, false, nil
}

// ownAuthorization returns the credentials for our realm, or any if there are none.
func (s *Server) ownAuthorization(values []string) (l authorization, ok bool) {
	for _, v := range values {
		if got, is := parseAuthorization(v); is && (!ok || got.realm == s.config.Realm) {
			l, ok = got, true
		}
	}
	return l, ok
}
