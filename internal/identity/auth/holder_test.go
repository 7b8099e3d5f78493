package auth_test

import (
	"context"
	"testing"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// A signed address ends with the key that made it, and with the organisation. A rotated key is followed.
func TestCheckMaker_EndsWithKeyAndOrganisation(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		plain, _ := h.createKey(t, auth.Request{})
		old, _ := h.createKey(t, auth.Request{})
		unable, _ := h.createKey(t, auth.Request{Scopes: []access.Scope{access.FlowsAdmin}})
		works := func(org, key string) bool {
			return h.CheckMaker(context.Background(), access.Holder{OrgID: org, KeyID: key,
				Scopes: []access.Scope{access.CallsRead}}) == nil
		}
		want := func(what string, got, want bool) {
			t.Helper()
			if got != want {
				t.Errorf("%s: works is %t", what, got)
			}
		}
		want("of a key", works(h.org.ID, plain.ID), true)
		want("of a key without the scope", works(h.org.ID, unable.ID), false)
		want("of nobody in particular", works(h.org.ID, ""), true)
		want("of an organisation that is gone", works("org_none", ""), false)
		h.server.Do(optest.Admin(h.org.ID), "POST", "/api-keys/"+old.ID+"/rotate", `{"grace_seconds":0}`).Want(201)
		want("of a rotated key", works(h.org.ID, old.ID), true)
		h.server.Do(optest.Admin(h.org.ID), "DELETE", "/api-keys/"+plain.ID, nil).Want(204)
		want("of a revoked key", works(h.org.ID, plain.ID), false)
		if err := h.orgs.SetStatus(context.Background(), h.org.ID, org.Suspended); err != nil {
			t.Fatal(err)
		}
		want("of a suspended organisation", works(h.org.ID, old.ID), false)
		want("of a suspended organisation, by nobody in particular", works(h.org.ID, ""), false)
	})
}
