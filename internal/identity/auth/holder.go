package auth

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// StillHeld returns the scopes that a holder had and still has: its key or grant works, its user has the role, and the plan allows them. A
// rotated key is followed to its successor. The answer may be three seconds old.
func (s *Service) StillHeld(ctx context.Context, h access.Holder) ([]access.Scope, error) {
	if !h.Recorded() {
		return access.All(), nil
	}
	held, err := s.heldCache.Get(h.OrgID+"|"+h.KeyID+"|"+h.UserID, func() ([]access.Scope, error) { return s.currentScopes(ctx, h) })
	if err != nil {
		return nil, err
	}
	return access.Intersect(h.Scopes, held), nil
}

// CheckMaker returns the reason why a signed address of the holder does not work any more, or nil: its organisation is suspended, or the
// key, grant or user that made it lost the scopes. Addresses of holders that were not recorded end with the organisation only.
func (s *Service) CheckMaker(ctx context.Context, h access.Holder) error {
	o, err := s.orgs.Get(ctx, h.OrgID)
	if db.IsNone(err) || err == nil && o.IsBlocked() {
		return op.Fail("unauthenticated", "the organisation of this address is suspended or gone")
	}
	if err != nil {
		return fmt.Errorf("find the organisation of a signed address: %w", err)
	}
	if !h.Recorded() {
		return nil
	}
	held, err := s.currentScopes(ctx, h) // without the cache: a revocation counts at once
	if err == nil && len(access.Intersect(h.Scopes, held)) == 0 {
		err = op.Fail("unauthenticated", "who made this address may not read the file any more; ask for another address")
	}
	return err
}

// currentScopes returns the scopes of a holder's key, grant or user now; none if it does not work any more.
func (s *Service) currentScopes(ctx context.Context, h access.Holder) ([]access.Scope, error) {
	switch {
	case strings.HasPrefix(h.KeyID, "key_"):
		return s.currentKeyScopes(ctx, h)
	case strings.HasPrefix(h.KeyID, grantPrefix):
		g, err := getGrant(ctx, s.db.Read(ctx), h.OrgID, h.KeyID)
		if err != nil || !g.revokedAt.IsZero() {
			return nil, ignoreNone(err)
		}
	}
	return s.currentUserScopes(ctx, h)
}

func (s *Service) currentUserScopes(ctx context.Context, h access.Holder) ([]access.Scope, error) {
	const text = `SELECT role, status FROM users WHERE org_id = $1 AND id = $2`
	var role, status string
	err := s.db.Read(ctx).QueryRow(ctx, text, h.OrgID, h.UserID).Scan(&role, &status)
	if err != nil || status != "active" && status != "invited" {
		return nil, ignoreNone(err)
	}
	o, err := s.orgs.Get(ctx, h.OrgID)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	return s.MaxScopes(o, role), nil
}

// maxRotations bounds how many successors of a key are followed.
const maxRotations = 100

func (s *Service) currentKeyScopes(ctx context.Context, h access.Holder) ([]access.Scope, error) {
	id := h.KeyID
	for range maxRotations {
		// tenant: a partner's key may have set something up in a child organisation
		k, err := scan(s.db.Read(ctx).QueryRow(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE id = $1`, id).Scan)
		if err != nil {
			return nil, ignoreNone(err)
		}
		now := s.now()
		ended := !k.RevokedAt.IsZero() && !now.Before(k.RevokedAt.Time)
		switch {
		case ended && k.RotatesTo != nil:
			id = *k.RotatesTo
			continue
		case ended, !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt.Time), k.userStatus == "suspended", k.userStatus == "removed":
			return nil, nil
		}
		o, err := s.orgs.Get(ctx, k.orgID)
		if err != nil {
			return nil, fmt.Errorf("find the key's organisation: %w", err)
		}
		held := s.keyScopes(o, k)
		if k.orgID == h.OrgID {
			return held, nil
		}
		child, err := s.orgs.Get(ctx, h.OrgID)
		if err != nil || child.ParentID == nil || *child.ParentID != k.orgID {
			return nil, ignoreNone(err)
		}
		return s.orgs.Scopes(child, held), nil
	}
	return nil, nil
}

func ignoreNone(err error) error {
	if db.IsNone(err) {
		return nil
	}
	return err
}
