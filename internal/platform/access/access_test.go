package access_test

import (
	"context"
	"testing"

	"soniq/internal/platform/access"
)

func TestScopes_FifteenWithDescription(t *testing.T) {
	t.Parallel()
	seen := map[access.Scope]bool{}
	for _, s := range access.All() {
		if seen[s] || !s.Known() || s.Description() == "" {
			t.Errorf("scope %q is listed twice or not explained", s)
		}
		seen[s] = true
	}
	if len(seen) != 15 {
		t.Errorf("got %d scopes, the contract has 15", len(seen))
	}
	if access.Scope("calls:admin").Known() {
		t.Error("calls:admin is no scope of the contract")
	}
}

func TestNeed_MetBy(t *testing.T) {
	t.Parallel()
	read, write, super := access.CallsRead, access.CallsWrite, access.SupervisorWrite
	for _, c := range []struct {
		need access.Need
		held []access.Scope
		met  bool
	}{
		{access.One(read), []access.Scope{read}, true},
		{access.One(read), []access.Scope{write}, false}, // a write scope does not imply its read scope
		{access.One(read), nil, false},
		{access.Either(read, write), []access.Scope{write}, true},
		{access.Both(super, write), []access.Scope{super}, false},
		{access.Both(super, write), []access.Scope{write, super}, true},
		{access.Public, nil, true},
		{access.Any, nil, true},
		{access.Need{}, access.All(), false}, // the zero Need is never satisfied
	} {
		if got := c.need.MetBy(c.held); got != c.met {
			t.Errorf("%q with %v: got %v, want %v", c.need, c.held, got, c.met)
		}
	}
}

func TestContext_WithoutPrincipal(t *testing.T) {
	t.Parallel()
	if _, ok := access.From(context.Background()); ok || access.Org(context.Background()) != "" {
		t.Error("a principal came from nowhere")
	}
	ctx := access.With(context.Background(), access.Principal{OrgID: "org_a"})
	if access.Org(ctx) != "org_a" {
		t.Errorf("got organisation %q", access.Org(ctx))
	}
}
