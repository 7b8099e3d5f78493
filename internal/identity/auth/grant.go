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

// Grant is the permission of a user for a client. Its tokens end with it.
type Grant struct {
	ID         string
	UserID     string
	ClientID   string
	ClientName string
	Audience   Audiences
	Scopes     []access.Scope
	CreatedAt  db.Time
	LastUsedAt db.Time
	LastUsedIP string

	orgID       string
	revokedAt   db.Time
	stepUpUntil db.Time // until then a refresh is refused as if the grant were revoked
	role        string
	userStatus  string
}

const grantPrefix = "gra_"

// MaxScopes returns the scopes that a user with this role may grant to clients and keys: those of the role,
// restricted by the plan. Owners and administrators of an organisation without a partner above it may grant partner
// scopes.
func (s *Service) MaxScopes(o org.Organization, role string) []access.Scope {
	held := access.RoleScopes(role)
	if (role == "owner" || role == "admin") && o.ParentID == nil && !o.Sandbox() {
		held = access.All()
	}
	return s.orgs.Scopes(o, held)
}

// verifyAccess returns the principal of an access token. Its scopes are the granted ones, restricted to those that
// the user still has.
func (s *Service) verifyAccess(ctx context.Context, token string, at Audience, e access.Environment, source netip.Addr) (access.Principal,
	error) {
	t, err := s.accessToken(ctx, token)
	if db.IsNone(err) {
		return access.Principal{}, op.Fail("unauthenticated", "this token is not known")
	}
	if err != nil {
		return access.Principal{}, fmt.Errorf("look token up: %w", err)
	}
	p := access.Principal{OrgID: t.orgID, UserID: t.grant.UserID, KeyID: t.grant.ID, KeyName: t.grant.ClientName, Kind: access.OAuthToken,
		Environment: e, Source: source}
	switch {
	case !s.now().Before(t.expiresAt.Time):
		return p, op.Fail("token_expired", "this token has expired")
	case !slices.Contains(t.audience, at):
		return p, op.Fail("unauthenticated", "this token is for another resource")
	case e != access.Live:
		return p, op.Fail("wrong_environment", "tokens of people work outside the sandbox only")
	}
	o, err := s.grantOrg(ctx, t.grant)
	if err != nil {
		return p, err
	}
	s.lastUses.record(p.KeyID, p.OrgID, db.At(s.now()), source)
	p.Role = t.grant.role
	p.Scopes, p.Timezone, p.Limits = access.Intersect(t.scopes, s.MaxScopes(o, t.grant.role)), o.Timezone, RateLimits(o)
	return p, nil
}

// grantOrg returns the organisation of a grant. If the grant may not be used, the error contains the reason.
func (s *Service) grantOrg(ctx context.Context, g Grant) (o org.Organization, err error) {
	switch {
	case !g.revokedAt.IsZero():
		return o, op.Fail("unauthenticated", "this was revoked")
	case g.userStatus != "active" && g.userStatus != "invited":
		return o, op.Fail("unauthenticated", "the person who granted this is "+g.userStatus)
	}
	if o, err = s.orgs.Get(ctx, g.orgID); err != nil {
		return o, fmt.Errorf("find the organisation of a grant: %w", err)
	}
	if o.IsBlocked() {
		return o, op.Fail("org_suspended", "the organisation is "+string(o.Status))
	}
	return o, nil
}

func (s *Service) usableGrant(ctx context.Context, org, id string) (Grant, org.Organization, error) {
	g, err := getGrant(ctx, s.db.Read(ctx), org, id)
	if db.IsNone(err) {
		err = op.Fail("unauthenticated", "this was revoked")
	}
	if err != nil {
		return g, noOrg, err
	}
	o, err := s.grantOrg(ctx, g)
	return g, o, err
}

var noOrg org.Organization

// Grants returns the unrevoked grants of a user, newest first.
func (s *Service) Grants(ctx context.Context, org, user string) ([]Grant, error) {
	return grantsOf(ctx, s.db.Read(ctx), org, user)
}

// RevokeGrant revokes a grant of a user and deletes the consent. The client must ask the user again.
func (s *Service) RevokeGrant(ctx context.Context, tx db.Querier, org, user, id string) error {
	g, err := getGrant(ctx, tx, org, id)
	if db.IsNone(err) || err == nil && g.UserID != user {
		return op.NotFound("grant")
	}
	if err != nil {
		return fmt.Errorf("find grant: %w", err)
	}
	if err := deleteConsent(ctx, tx, g); err != nil {
		return fmt.Errorf("delete consent: %w", err)
	}
	return s.endGrant(ctx, tx, org, id)
}

// endGrant revokes a grant with all its tokens.
func (s *Service) endGrant(ctx context.Context, tx db.Querier, org, id string) error {
	if err := revokeGrant(ctx, tx, org, id, db.At(s.now())); err != nil {
		return fmt.Errorf("revoke grant: %w", err)
	}
	s.publishChanged(tx, "")
	return nil
}

// Audience is a resource for which tokens are issued.
type Audience string

// Resources: the API, and the tool server.
const (
	REST Audience = "rest"
	MCP  Audience = "mcp"
)

// Audiences are the resources for which a token is valid.
type Audiences []Audience

// String returns the audiences separated by spaces, as the database stores them.
func (a Audiences) String() string {
	words := make([]string, len(a))
	for i, x := range a {
		words[i] = string(x)
	}
	return strings.Join(words, " ")
}

func parseAudiences(text string) Audiences {
	var all Audiences
	for word := range strings.FieldsSeq(text) {
		all = append(all, Audience(word))
	}
	return all
}
