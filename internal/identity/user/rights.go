package user

import (
	"context"
	"fmt"
	"slices"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// CheckRole returns an error if the principal of the context does not hold a role of the organisation: the rank and every scope that the
// plan leaves to the role. The role owner needs a recent password too. Without a principal the operator or the telephone acts, and may give
// every role.
func (s *Service) CheckRole(ctx context.Context, o org.Organization, role string) error {
	if _, ok := access.From(ctx); !ok || !slices.Contains(Roles, role) {
		return nil // the check of the record reports unknown roles
	}
	if err := op.CheckGrant(ctx, role, s.orgs.Scopes(o, access.RoleScopes(role))); err != nil || role != access.MostTrusted {
		return err
	}
	return op.CheckConfirmed(ctx)
}

// checkManage returns an error if the principal may not change or remove a user with this role. users:admin is enough for agents and
// viewers. Higher roles must be held.
func (s *Service) checkManage(ctx context.Context, o org.Organization, role string) error {
	if !access.Above(role, "agent") {
		return nil
	}
	return s.CheckRole(ctx, o, role)
}

// checkChange returns an error if the principal may not make a change. Whoever changes what a user signs in with or is trusted with must
// hold the role before and after.
func (s *Service) checkChange(ctx context.Context, before, after User) error {
	p, _ := access.From(ctx)
	self := p.UserID == before.ID && p.OrgID == before.OrgID
	o, err := s.orgs.Get(ctx, before.OrgID)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	if before.Role != after.Role || before.Email != after.Email || after.pin != nil && !self {
		if err := s.CheckRole(ctx, o, before.Role); err != nil {
			return err
		}
		return s.CheckRole(ctx, o, after.Role)
	}
	if self && before.Status == after.Status {
		return nil
	}
	return s.checkManage(ctx, o, before.Role)
}

// checkRemove returns an error if the principal may not remove a user.
func (s *Service) checkRemove(ctx context.Context, u User) error {
	o, err := s.orgs.Get(ctx, u.OrgID)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	return s.checkManage(ctx, o, u.Role)
}

// checkReset returns an error if an invitation would show the principal a link that replaces a password. Such a link goes by mail alone,
// unless an owner in person asks for it.
func (s *Service) checkReset(ctx context.Context, tx db.Querier, u User) error {
	set, err := s.config.Logins.HasPassword(ctx, tx, u.OrgID, u.ID)
	if err != nil {
		return fmt.Errorf("find login: %w", err)
	}
	p, ok := access.From(ctx)
	owner := p.UserID != "" && p.HomeID == "" && p.Role == access.MostTrusted && p.Kind != access.OAuthToken
	if !set || !ok || owner {
		return nil
	}
	return op.Fail("not_enabled", "the user has a password, and a link that replaces it goes by mail alone, but this server sends no mail; "+
		"an owner has to invite the user with a key of their own, or the operator sets --smtp or runs soniq admin users password")
}

// mayShowLink reports whether the answer may have the link of an invitation. Programs that act for a person never get it.
func mayShowLink(ctx context.Context) bool {
	p, _ := access.From(ctx)
	return p.Kind != access.OAuthToken
}
