package auth

import (
	"context"
	"fmt"
	"slices"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// ActOnBehalf lets a partner's key act in an active child organisation. The key keeps its own scopes except partner
// scopes, restricted to those of the child's plan. The key must hold partners:write, so that keys for statistics
// cannot read the data of child organisations.
func (s *Service) ActOnBehalf(ctx context.Context, p access.Principal, child string) (access.Principal, error) {
	if p.Kind != access.PartnerKey || !slices.Contains(p.Scopes, access.PartnersWrite) {
		return p, &op.Error{Code: "insufficient_scope", Detail: "On-Behalf-Of needs a partner key that holds partners:write",
			Extra: map[string]any{"required_scopes": []access.Scope{access.PartnersWrite}}}
	}
	o, err := s.child(ctx, p.OrgID, child)
	if err != nil {
		return p, err
	}
	held := slices.DeleteFunc(slices.Clone(p.Scopes), access.Scope.Partner)
	p = p.ActingIn(o.ID, s.orgs.Scopes(o, held))
	p.Timezone = o.Timezone
	return p, nil
}

// child returns an active organisation of a partner.
func (s *Service) child(ctx context.Context, partner, id string) (org.Organization, error) {
	o, err := s.orgs.Get(ctx, id)
	switch {
	case db.IsNone(err) || err == nil && (o.ParentID == nil || *o.ParentID != partner):
		return o, op.NotFound("organisation")
	case err != nil:
		return o, fmt.Errorf("find child organisation: %w", err)
	case o.Status != org.Active:
		return o, op.Fail("org_suspended", "the organisation is "+string(o.Status))
	}
	return o, nil
}
