package trunk_test

import (
	"context"
	"errors"
	"testing"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	trunkpkg "soniq/internal/telephony/trunk"
)

// A short number leaves as it was dialled, on trunks that take numbers of the country. It is subject to the kill switch and
// the limits.
func TestPlan_ShortNumberAsDialled(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.createTrunk("own", `,"priority":1,"prefix_rules":[{"match":"+49","strip":3,"prepend":"0"}]`)
		h.createTrunk("abroad", `,"priority":2,"prefix_rules":[{"match":"+33","strip":0,"prepend":""}]`)
		h.createTrunk("rule", `,"priority":3,"prefix_rules":[{"match":"+33","strip":0,"prepend":""},{"match":"116","strip":0,"prepend":"+49"}]`)
		h.createTrunk("all", `,"priority":4`)
		for dialled, want := range map[string]string{
			"116117": "own:116117 rule:+49116117 all:116117", "0116117": "own:116117 rule:+49116117 all:116117", "115": "own:115 all:115", "988": "invalid_number",
		} {
			if got := h.planText(t, dialled); got != want {
				t.Errorf("%s: %q, want %q", dialled, got, want)
			}
		}
		end, why := h.admit(t, "116117")
		defer end()
		if _, again := h.admit(t, "0116117"); why != trunkpkg.Allowed || again != trunkpkg.DestinationRateExceeded {
			t.Errorf("one call: %q, two at once: %q", why, again)
		}
		if err := h.SetOutboundKillSwitch(context.Background(), true); err != nil {
			t.Fatal(err)
		}
		if _, why := h.admit(t, "115"); why != trunkpkg.OutboundStopped {
			t.Errorf("while calls are stopped: %q", why)
		}
	})
}

// An extension from before its number was reserved is named, because calls to it leave the organisation.
func TestUnreachableExtensions_Named(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.request("PATCH", "/organization", `{"country":"FR"}`).Want(200)
		err := d.Tx(context.Background(), func(tx db.Querier) error {
			return errors.Join(org.SetExtension(context.Background(), tx, h.org, "que_1", "115"), org.SetExtension(context.Background(), tx, h.org, "usr_1", "116"))
		})
		if err != nil {
			t.Fatal(err)
		}
		all, err := h.UnreachableExtensions(context.Background())
		want := trunkpkg.UnreachableExtension{OrgID: h.org, OrgName: "Acme", Extension: "115", Owner: "que_1"}
		if err != nil || len(all) != 1 || all[0] != want {
			t.Errorf("%+v, %v; want %+v", all, err, want)
		}
	})
}
