package access

import (
	"net/netip"
	"slices"
	"time"
)

// Roles are the roles of users, lowest first. RoleScopes has what each may do.
var Roles = []string{"viewer", "agent", "supervisor", "admin", "owner"}

// MostTrusted is the role that may do everything.
const MostTrusted = "owner"

// rank returns the position of a role; -1 if it is unknown.
func rank(role string) int { return slices.Index(Roles, role) }

// Above reports whether a role is higher than another one. An unknown role is below all others.
func Above(role, other string) bool { return rank(role) > rank(other) }

// Lower returns the lower one of two roles.
func Lower(a, b string) string {
	if Above(a, b) {
		return b
	}
	return a
}

// Excess is the part of a grant that its giver does not hold. The zero Excess has no such part.
type Excess struct {
	Role   string  // the granted role, if it is above that of the giver
	Scopes []Scope // the granted scopes that the giver does not hold
}

// None reports whether the giver holds all that is granted.
func (e Excess) None() bool { return e.Role == "" && len(e.Scopes) == 0 }

// Excess returns what a grant of a role and scopes has beyond the principal. role is "" for a grant of scopes alone. This is
// the only rule about granting: whoever grants must hold every scope themselves, and must not be below the role.
func (p Principal) Excess(role string, scopes []Scope) (e Excess) {
	if role != "" && (rank(role) < 0 || Above(role, p.Role)) {
		e.Role = role
	}
	e.Scopes = slices.DeleteFunc(slices.Clone(scopes), func(s Scope) bool { return slices.Contains(p.Scopes, s) })
	return e
}

// Bounds are the limits on the use of a credential. Credentials that are made with it have the same or narrower ones.
type Bounds struct {
	Networks  []netip.Prefix // it may be used from these; empty: from anywhere
	ExpiresAt time.Time      // zero: never
}

// Within reports whether every source that b allows is allowed by outer too.
func (b Bounds) Within(outer Bounds) (networks, expiry bool) {
	networks = len(outer.Networks) == 0 || len(b.Networks) > 0
	for _, n := range b.Networks {
		inside := func(o netip.Prefix) bool { return o.Bits() <= n.Bits() && o.Contains(n.Addr()) }
		networks = networks && (len(outer.Networks) == 0 || slices.ContainsFunc(outer.Networks, inside))
	}
	return networks, outer.ExpiresAt.IsZero() || !b.ExpiresAt.IsZero() && !b.ExpiresAt.After(outer.ExpiresAt)
}

// Holder is who set something up that works on without a request, such as a webhook. It may do no more than its maker still may. The zero
// Holder is of a time in which makers were not recorded, and may do everything.
type Holder struct {
	OrgID  string  `json:"org_id"`
	KeyID  string  `json:"key_id"` // or the ID of a grant
	UserID string  `json:"user_id"`
	Scopes []Scope `json:"scopes"` // held when it was set up
}

// Holder returns the principal as the holder of something.
func (p Principal) Holder() Holder {
	return Holder{OrgID: p.OrgID, KeyID: p.KeyID, UserID: p.UserID, Scopes: slices.Clone(p.Scopes)}
}

// Recorded reports whether the maker is known.
func (h Holder) Recorded() bool { return h.KeyID != "" || h.UserID != "" }
