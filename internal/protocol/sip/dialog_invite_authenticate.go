package sip

import (
	"context"
	"errors"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/guard"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
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
		if s.config.Accounts.Exempt(s.ctx, in.Source.Addr()) {
			s.guard.Trust(in.Source.Addr(), s.clock())
		}
		in.leg.enqueue(func() {
			in.leg.trunk = trunk
			in.leg.markTrusted()
		})
		s.deliverInvite(in)
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	acc, stale, ok, err := s.authenticate(ctx, in.claim("INVITE"))
	cancel()
	switch {
	case errors.Is(err, errOtherURI):
		in.Reject(400, otherURIText, 0)
	case err != nil:
		s.logFailure("look up the account of an INVITE", err)
		in.Reject(503, "", s.limits.RetryAfter)
	case ok:
		in.setAccount(acc)
		in.leg.enqueue(func() {
			in.leg.symmetric, in.leg.account = true, acc.ID
			in.leg.markTrusted()
		})
		s.deliverInvite(in)
	default:
		if len(in.authorizations) == 0 {
			s.countFutileRequest(in.Source.Addr(), in.Transport)
		}
		value := s.auth.Challenge(acc.hashes().Algorithm(), stale)
		s.stats.challenges.Add(1)
		in.leg.enqueue(func() { in.leg.rejectForRetry(407, "Proxy-Authenticate: "+value+"\r\n") })
	}
}

// trunkOf returns the trunk that a call comes from. A call over WebSocket never comes from a trunk, whatever its
// address.
func (s *Server) trunkOf(in *Inbound) (string, bool) {
	if in.Transport.IsWebSocket() {
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
		name = l.Username
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
	if l.flow.Conn != nil {
		l.flow.Conn.Prove()
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

// hashes returns the hashes of the account's password.
func (a Account) hashes() digest.Hashes {
	return digest.Hashes{MD5: a.HA1MD5, SHA256: a.HA1SHA256, WantSHA256: a.WantSHA256}
}

// claim holds what a request says about its sender, for authenticate.
type claim struct {
	method, from string
	uri          sipmsg.URI // request URI
	logins       []string   // Authorization and Proxy-Authorization values
	source       netip.AddrPort
	conn         *transport.Conn
	viaProxy     bool // the request passed a proxy, which may have rewritten its request URI
}

// claim returns what a call says about its caller.
func (in *Inbound) claim(method string) claim {
	return claim{method: method, from: in.From.URI.User, uri: in.RequestURI, logins: in.authorizations, source: in.Source, conn: in.conn,
		viaProxy: in.viaProxy}
}

var errOtherURI = errors.New("sip: the digest uri is not the request URI")

// otherURIText is the Warning of a 400.
const otherURIText = "The uri of the credentials is another than the request URI. Send credentials for this request."

const otherURIWarning = "Warning: 399 soniq \"" + otherURIText + "\"\r\n"

// authenticate checks the credentials of a request. If ok is false, the returned account determines the challenge.
// Whether the user exists changes nothing in the response, except for accounts that require SHA-256. The error is
// errOtherURI if the credentials are for another request URI (RFC 7616 §3.4.6).
func (s *Server) authenticate(ctx context.Context, c claim) (acc Account, stale, ok bool, err error) {
	l, found := s.ownAuthorization(c.logins)
	if c.conn != nil && c.conn.Token.Username != "" && !found {
		acc, ok, err = s.config.Accounts.Credentials(ctx, c.conn.Token.Username)
		if ok && c.conn.Token.Generation < acc.TokenGeneration { // its session has ended, perhaps at another node
			c.conn.Close()
			return acc, false, false, nil
		}
		if ok || err != nil {
			return acc, false, ok, err
		}
	}
	name := c.from
	if found {
		name = l.Username
	}
	began := s.clock()
	acc, known, err := s.config.Accounts.Credentials(ctx, name)
	if err != nil || !found {
		return acc, false, false, err
	}
	if !s.isForURI(&l, &c) {
		s.countFutileRequest(c.source.Addr(), c.conn.Transport())
		return acc, false, false, errOtherURI
	}
	switch s.auth.Verify(l, c.method, acc.hashes(), known && s.mayTry(&c, name, acc.ID)) {
	case digest.Good:
		s.guard.Trust(c.source.Addr(), s.clock())
		s.guessLimiter.RecordSuccess(acc.ID, guard.Network(c.source.Addr()))
		return acc, false, true, nil
	case digest.Stale:
		return acc, true, false, nil
	}
	s.recordWrongPassword(&l, &c, acc, known)
	sleepUntil(ctx, s.done, wrongPasswordTime-s.clock()+began)
	return acc, false, false, nil
}

// wrongPasswordTime is how long a refusal of credentials takes. It is longer than any lookup from memory or database
// usually is, so that the time does not tell whether the user exists.
const wrongPasswordTime = 20 * time.Millisecond

// isForURI reports whether credentials are for the request URI (RFC 7616 §3.4.6). The user part must be the same,
// because it is whom the request calls. The host may be another name of this server, or one that a proxy replaced. Some
// phones leave out the user part and name the server alone; such credentials name no one else.
func (s *Server) isForURI(l *digest.Authorization, c *claim) bool {
	u, err := sipmsg.ParseURI(l.URI)
	if err != nil {
		return false
	}
	hosts := strings.EqualFold(u.Host, c.uri.Host) || c.viaProxy || s.IsLocalURI(u)
	return hosts && (u.User == c.uri.User || u.User == "")
}

// mayTry reports whether a password is checked at all. From a banned source only a phone at the flow of its registration
// tries without limit.
func (s *Server) mayTry(c *claim, name, account string) bool {
	now, source := s.clock(), c.source.Addr()
	if s.guard.IsPhoneFlow(c.source, name, now) {
		return true
	}
	emergency := c.method == "INVITE" && s.config.IsUrgent != nil && s.config.IsUrgent(c.uri.User)
	if !s.guard.Banned(source, now) || emergency {
		return s.guard.Trusted(source, now) || s.guessLimiter.MayTry(account, guard.Network(source), now)
	}
	return s.guard.IsPhone(source, name, now) && s.guessLimiter.MayTry(account, netip.Addr{}, now)
}

// recordWrongPassword counts a wrong password, and may ban its source. Only a sender that received our nonce has proved
// its source address: a forged datagram must not ban another source.
func (s *Server) recordWrongPassword(l *digest.Authorization, c *claim, acc Account, known bool) {
	s.stats.authFailures.Add(1)
	now, source := s.clock(), c.source.Addr()
	if !s.auth.IsFresh(l.Nonce, acc.hashes().Algorithm()) {
		s.countFutileRequest(source, sipmsg.UDP)
		return
	}
	banned := s.guard.Banned(source, now)
	switch {
	case known && banned:
		s.guessLimiter.RecordFailure(acc.ID, netip.Addr{}, now)
	case known && !s.guard.Trusted(source, now):
		s.guessLimiter.RecordFailure(acc.ID, guard.Network(source), now)
	}
	if !banned && s.guard.CountFailedLogin(source, now) {
		s.banSource(source, banReasonGuessing, true)
	}
}

// ownAuthorization returns the credentials for our realm, or any if there are none.
func (s *Server) ownAuthorization(values []string) (l digest.Authorization, ok bool) {
	for _, v := range values {
		if got, is := digest.ParseAuthorization(v); is && (!ok || got.Realm == s.config.Realm) {
			l, ok = got, true
		}
	}
	return l, ok
}
