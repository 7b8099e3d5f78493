package auth

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// grantRole returns the highest role that the key may give: that of its maker, and not above that of its user.
func (k Key) grantRole() string {
	if k.UserID == nil {
		return k.role
	}
	return access.Lower(k.role, k.userRole)
}

// bounds returns the limits on the use of the key.
func (k Key) bounds() access.Bounds {
	return access.Bounds{Networks: k.networks, ExpiresAt: k.ExpiresAt.Time}
}

// keyScopes returns the scopes of a key within the plan. A key that its user made without administering the organisation has no
// more than the role that the user has now.
func (s *Service) keyScopes(o org.Organization, k Key) []access.Scope {
	if k.UserID != nil && access.Above("admin", k.role) {
		return access.Intersect(k.Scopes, s.MaxScopes(o, k.userRole))
	}
	return s.orgs.Scopes(o, k.Scopes)
}

// inherit gives a key without limits of its own those of the credential that makes it.
func (r Request) inherit(p access.Principal) Request {
	if len(r.AllowedIPs) == 0 {
		for _, n := range p.Bounds.Networks {
			r.AllowedIPs = append(r.AllowedIPs, n.String())
		}
	}
	if r.ExpiresAt.IsZero() && !p.Bounds.ExpiresAt.IsZero() {
		r.ExpiresAt = db.At(p.Bounds.ExpiresAt)
	}
	return r
}

// boundViolations lists the limits of the principal that a key would escape.
func boundViolations(p access.Principal, r Request) (wrong []op.Violation) {
	b := access.Bounds{ExpiresAt: r.ExpiresAt.Time}
	for _, text := range r.AllowedIPs {
		n, err := network(text)
		if err != nil {
			return nil // reported by violations
		}
		b.Networks = append(b.Networks, n)
	}
	networks, expiry := b.Within(p.Bounds)
	if !networks {
		wrong = append(wrong, op.Field("allowed_ips", "not_held", "must be within "+networkText(p.Bounds.Networks)+
			", where this credential may be used from"))
	}
	if !expiry {
		wrong = append(wrong, op.Field("expires_at", "not_held", "must not be later than this credential expires"))
	}
	return wrong
}

func networkText(all []netip.Prefix) (text string) {
	for i, n := range all {
		if i > 0 {
			text += ", "
		}
		text += n.String()
	}
	return text
}

// checkKeyUser returns an error if a key is for a user whose role is above that of the principal.
func (s *Service) checkKeyUser(ctx context.Context, r Request) error {
	p, _ := access.From(ctx)
	if r.UserID == "" || r.UserID == p.UserID && r.OrgID == p.OrgID {
		return nil
	}
	u, err := keyUser(ctx, s.db.Read(ctx), r.OrgID, r.UserID)
	if db.IsNone(err) {
		return nil // reported when the key is stored
	}
	if err != nil {
		return fmt.Errorf("find the key's user: %w", err)
	}
	return op.CheckGrant(ctx, u.Role, slices.Clone(r.Scopes))
}

// checkRotate returns an error if the key may give a role that the principal may not give.
func checkRotate(ctx context.Context, k Key) error {
	return op.CheckGrant(ctx, k.grantRole(), k.Scopes)
}
