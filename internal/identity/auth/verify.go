package auth

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Verify returns the principal of a token, or the error for which it is refused. If the token is known, the principal
// is returned with the error too. A mistyped token costs no database query.
func (s *Service) Verify(ctx context.Context, token string, e access.Environment, source netip.Addr) (access.Principal, error) {
	return s.VerifyFor(ctx, token, REST, e, source)
}

// VerifyFor is Verify at one of the resources. An access token is valid only for the resources in its audience, a key
// for all.
func (s *Service) VerifyFor(ctx context.Context, token string, at Audience, e access.Environment, source netip.Addr) (access.Principal,
	error) {
	if strings.HasPrefix(token, accessPrefix(s.brand)) {
		return s.verifyAccess(ctx, token, at, e, source)
	}
	return s.verifyKey(ctx, token, e, source)
}

func (s *Service) verifyKey(ctx context.Context, token string, e access.Environment, source netip.Addr) (access.Principal, error) {
	k, err := s.lookUpKey(ctx, token)
	if db.IsNone(err) {
		return access.Principal{}, op.Fail("unauthenticated", "this key is not known")
	}
	if err != nil {
		return access.Principal{}, fmt.Errorf("look key up: %w", err)
	}
	p := access.Principal{OrgID: k.orgID, KeyID: k.ID, KeyName: k.Name, Kind: k.Kind, Environment: e, Source: source}
	if k.UserID != nil {
		p.UserID = *k.UserID
	}
	o, err := s.checkKey(ctx, k, e, source)
	if err != nil {
		return p, err
	}
	s.lastUses.record(k.ID, k.orgID, db.At(s.now()), source)
	p.Scopes, p.Role, p.Bounds, p.Timezone, p.Limits = s.keyScopes(o, k), k.grantRole(), k.bounds(), o.Timezone, RateLimits(o)
	return p, nil
}

// RateLimits returns the limits of each credential of an organisation.
func RateLimits(o org.Organization) access.Limits {
	return access.Limits{ReadsPerMinute: o.Limits.ReadsPerMinute, WritesPerMinute: o.Limits.WritesPerMinute, Burst: o.Limits.Burst,
		SearchesPerSecond: o.Limits.MemorySearchesPerSecond}
}

// Revalidate checks whether an accepted principal is still valid: its key may have been revoked or have expired
// since. It queries the database.
func (s *Service) Revalidate(ctx context.Context, p access.Principal) error {
	if p.Kind == access.OAuthToken {
		_, _, err := s.usableGrant(ctx, p.OrgID, p.KeyID)
		return err
	}
	k, _, err := get(ctx, s.db.Read(ctx), p.Home(), p.Home(), p.KeyID)
	if db.IsNone(err) {
		return op.Fail("key_revoked", "this key is gone")
	}
	if err != nil {
		return fmt.Errorf("look key up: %w", err)
	}
	if _, err := s.checkKey(ctx, k, p.Environment, p.Source); err != nil || p.HomeID == "" {
		return err
	}
	_, err = s.child(ctx, p.HomeID, p.OrgID)
	return err
}

func (s *Service) lookUpKey(ctx context.Context, token string) (Key, error) {
	if !couldBeKey(s.brand, token) {
		return Key{}, db.ErrNone
	}
	digest := s.seal.Digest(token)
	return s.keyCache.Get(digest, func() (Key, error) { return keyByDigest(ctx, s.db.Read(ctx), digest) })
}

func (s *Service) checkKey(ctx context.Context, k Key, e access.Environment, source netip.Addr) (o org.Organization, err error) {
	now := s.now()
	switch {
	case !k.RevokedAt.IsZero() && !now.Before(k.RevokedAt.Time):
		return o, op.Fail("key_revoked", "this key was revoked")
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt.Time):
		return o, op.Fail("key_expired", "this key has expired")
	case k.environment() != e:
		return o, op.Fail("wrong_environment", "this is a "+k.Environment+" key")
	case !k.allowsSource(source):
		return o, op.Fail("ip_not_allowed", "this key may not be used from "+source.String())
	}
	if k.userStatus == "suspended" {
		return o, op.Fail("key_revoked", "the user of this key is suspended")
	}
	if o, err = s.orgs.Get(ctx, k.orgID); err != nil {
		return o, fmt.Errorf("find the key's organisation: %w", err)
	}
	if o.IsBlocked() {
		return o, op.Fail("org_suspended", "the organisation is "+string(o.Status))
	}
	return o, nil
}

func (k Key) allowsSource(source netip.Addr) bool {
	source = source.Unmap().WithZone("")
	return len(k.networks) == 0 || slices.ContainsFunc(k.networks, func(p netip.Prefix) bool { return p.Contains(source) })
}
