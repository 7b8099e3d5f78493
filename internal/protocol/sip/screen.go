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
const lookupLimit = 5 * time.Second

// authenticateInvite identifies the caller and hands the call to the switch. It challenges callers that are neither a
// trunk nor authenticated.
func (s *Server) screen(in *Inbound) {
	defer func() {
		if r := recover(); r != nil {
			s.panicked(r, debug.Stack())
			in.Reject(500, "", 0)
		}
	}()
	trunk, isTrunk := s.trunk(in)
	if isTrunk {
		in.TrunkID = trunk
		s.guard.trust(in.Source.Addr(), s.clock())
		if in.conn != nil {
			in.leg.post(in.leg.vouch)
		}
		s.deliver(in)
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookupLimit)
	acc, stale, ok, err := s.authenticate(ctx, "INVITE", in.From.URI.User, in.logins, in.Source.Addr(), in.conn)
	cancel()
	switch {
	case err != nil:
		s.failed("look up the account of an INVITE", err)
		in.Reject(503, "", s.limits.RetryAfter)
	case ok:
		in.login(acc)
		in.leg.post(func() {
			in.leg.symmetric = true
			in.leg.vouch()
		})
		s.deliver(in)
	default:
		if len(in.logins) == 0 {
			s.suspect(in.Source.Addr(), in.Transport)
		}
		value := s.auth.challenge(acc.algorithm(), stale)
		s.stats.challenges.Add(1)
		in.leg.post(func() { in.leg.challenge(407, "Proxy-Authenticate: "+value+"\r\n") })
	}
}

// trunkOf returns the trunk that a call comes from. A call over WebSocket never comes from a trunk, whatever its
// address.
func (s *Server) trunk(in *Inbound) (string, bool) {
	if in.Transport.web() {
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
	if l, found := s.ourLogin(in.logins); found {
		name = l.username
	} else if strings.Trim(name, "+0123456789*#-. ") == "" || strings.EqualFold(name, "anonymous") {
		return false
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookupLimit)
	defer cancel()
	_, known, err := s.config.Accounts.Credentials(ctx, name)
	return known || err != nil // if the lookup fails, the caller is challenged, and gets 503 if it fails again
}

// markTrusted marks the leg's connection as that of a phone or trunk.
func (l *Leg) vouch() {
	if l.flow.conn != nil {
		l.flow.conn.known.Store(true)
	}
}

// deliverInvite hands the call to the switch, unless the caller canceled meanwhile.
func (s *Server) deliver(in *Inbound) {
	l := in.leg
	s.calls.Add(1)
	l.counted.Store(true)
	if l.over.Load() {
		l.uncount()
		return
	}
	leg, refused := s.replaced(in)
	if refused != 0 {
		in.Reject(refused, "", 0)
		return
	}
	in.Replaces = leg
	s.handler.Invite(s.ctx, in)
}

// digestAlgorithm returns the algorithm of the account's challenge. For the zero account it is MD5, the only one that
// every phone supports.
func (a Account) algorithm() algorithm {
	if a.WantSHA256 && a.HA1SHA256 != "" {
		return algSHA256
	}
	return algMD5
}

// authenticate checks the credentials of a request. If ok is false, the returned account determines the challenge.
// Whether the user exists changes nothing in the response, except for accounts that require SHA-256.
func (s *Server) authenticate(ctx context.Context, method, from string, logins []string, source netip.Addr, c *conn) (acc Account, stale, ok bool, err error) {
	l, found := s.ourLogin(logins)
	if c != nil && c.login != "" && !found {
		if acc, ok, err = s.config.Accounts.Credentials(ctx, c.login); ok || err != nil {
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
	heard := known && (trusted || s.logins.may(acc.ID, network(source), now))
	switch s.auth.check(l, method, acc, heard) {
	case authGood:
		s.guard.trust(source, now)
		s.logins.right(acc.ID, network(source))
		return acc, false, true, nil
	case authStale:
		return acc, true, false, nil
	}
	s.stats.authFailures.Add(1)
	// Only a sender that received our nonce has proved its source address: a forged datagram must not ban another
	// source.
	if !s.auth.fresh(l.nonce, acc.algorithm()) {
		s.suspect(source, UDP)
		return acc, false, false, nil
	}
	if known && !trusted {
		s.logins.wrong(acc.ID, network(source), now)
	}
	if s.guard.failure(source, now) {
		s.punish(source, whyGuessing, true)
	}
	return acc, false, false, nil
}

// ownAuthorization returns the credentials for our realm, or any if there are none.
func (s *Server) ourLogin(values []string) (l login, ok bool) {
	for _, v := range values {
		if got, is := readLogin(v); is && (!ok || got.realm == s.config.Realm) {
			l, ok = got, true
		}
	}
	return l, ok
}
