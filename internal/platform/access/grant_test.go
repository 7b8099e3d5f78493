package access_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"soniq/internal/platform/access"
)

// Every role against every role and every single missing scope.
func TestExcess_EveryRoleAndScope(t *testing.T) {
	t.Parallel()
	for i, giver := range append([]string{""}, access.Roles...) {
		for j, given := range access.Roles {
			held := access.RoleScopes(given)
			p := access.Principal{Role: giver, Scopes: held}
			if got, want := p.Excess(given, held).None(), j < i; got != want {
				t.Errorf("%q grants %s: %t, want %t", giver, given, got, want)
			}
			for _, s := range held {
				p.Scopes = slices.DeleteFunc(slices.Clone(held), func(x access.Scope) bool { return x == s })
				if e := p.Excess(given, held); !slices.Equal(e.Scopes, []access.Scope{s}) {
					t.Errorf("%s grants %s without %s: %v", giver, given, s, e)
				}
			}
		}
	}
	if (access.Principal{Role: "owner", Scopes: access.All()}).Excess("king", nil).None() {
		t.Error("an unknown role was granted")
	}
}

func TestBounds_Within(t *testing.T) {
	t.Parallel()
	now := time.Now()
	net := func(all ...string) (out []netip.Prefix) {
		for _, x := range all {
			out = append(out, netip.MustParsePrefix(x))
		}
		return out
	}
	for name, x := range map[string]struct {
		inner, outer     access.Bounds
		networks, expiry bool
	}{
		"both free":      {access.Bounds{}, access.Bounds{}, true, true},
		"free in narrow": {access.Bounds{}, access.Bounds{Networks: net("192.0.2.0/24"), ExpiresAt: now}, false, false},
		"narrow in free": {access.Bounds{Networks: net("192.0.2.0/24"), ExpiresAt: now}, access.Bounds{}, true, true},
		"wider": {access.Bounds{Networks: net("192.0.0.0/16"), ExpiresAt: now.Add(1)},
			access.Bounds{Networks: net("192.0.2.0/24"), ExpiresAt: now}, false, false},
		"one outside": {access.Bounds{Networks: net("192.0.2.1/32", "10.0.0.0/8"), ExpiresAt: now},
			access.Bounds{Networks: net("192.0.2.0/24"), ExpiresAt: now}, false, true},
		"inside": {access.Bounds{Networks: net("192.0.2.1/32"), ExpiresAt: now}, access.Bounds{Networks: net("192.0.2.0/24"), ExpiresAt: now}, true, true},
	} {
		if n, e := x.inner.Within(x.outer); n != x.networks || e != x.expiry {
			t.Errorf("%s: %t, %t", name, n, e)
		}
	}
}
