package number_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/number"
)

const claimed = "+442079460018"

// competitor is a second organisation with a trunk.
type competitor struct {
	h          *fixture
	org, trunk string
}

func (h *fixture) competitor(t *testing.T, host string, confirmed bool) competitor {
	t.Helper()
	o, err := h.orgs.Create(context.Background(), "Other", "GB")
	if err != nil {
		t.Fatal(err)
	}
	if confirmed {
		if _, err := h.trunks.Confirm(context.Background(), o.ID, host); err != nil {
			t.Fatal(err)
		}
	}
	c := competitor{h: h, org: o.ID}
	c.trunk = c.do("POST", "/trunks", fmt.Sprintf(`{"name":"carrier","host":%q}`, host)).Want(201).Text("id")
	return c
}

func (c competitor) do(method, path, body string) *optest.Answer {
	return c.h.server.Do(optest.Admin(c.org), method, path, body)
}

func (c competitor) claim() *optest.Answer {
	return c.do("POST", "/numbers", fmt.Sprintf(`{"number":%q,"trunk_id":%q}`, claimed, c.trunk))
}

// ownerFrom returns the organisation that gets a call to the claimed number from an address, and "" if none does.
func (h *fixture) ownerFrom(t *testing.T, address string) string {
	t.Helper()
	a := netip.MustParseAddr(address)
	came, _, err := h.trunks.BySource(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	n, ok, err := h.Route(context.Background(), claimed, number.Call{TrunkID: came.TrunkID, Source: a})
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return ""
	}
	return n.OrgID
}

// Two organisations with carriers of their own enter the same number. Neither learns of the other, and neither gets the
// calls of the other.
func TestClaim_OwnCarriersAreIndependent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		mallory := h.competitor(t, "198.51.100.1", false)
		if a := mallory.claim().Want(201); a.Text("status") != "active" {
			t.Errorf("the first: %s", a.Bytes)
		}
		if a := h.add(claimed, "").Want(201); a.Text("status") != "active" {
			t.Errorf("the second: %s", a.Bytes)
		}
		h.add(claimed, "").Want(409).Refused("number_unavailable")
		if got := h.ownerFrom(t, "192.0.2.1"); got != h.org {
			t.Errorf("over our carrier %q is called, not us", got)
		}
		if got := h.ownerFrom(t, "198.51.100.1"); got != mallory.org {
			t.Errorf("over their carrier %q is called", got)
		}
		mallory.do("PATCH", "/trunks/"+mallory.trunk, `{"allowed_ips":["192.0.2.1"]}`).Want(422)
	})
}

// At a carrier that several organisations use, a number is proven by the first call to it, or by the operator.
func TestClaim_SharedCarrierNeedsProof(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		mallory := h.competitor(t, "192.0.2.1", true)
		a := mallory.claim().Want(202)
		if a.Text("status") != "pending" || a.Text("status_detail") == "" {
			t.Errorf("at a shared carrier: %s", a.Bytes)
		}
		if b := h.add(claimed, "").Want(202); b.Text("status") != "pending" || b.Text("status_detail") != a.Text("status_detail") {
			t.Errorf("the answer differs, so it tells that somebody has the number: %s", b.Bytes)
		}
		if got := h.ownerFrom(t, "192.0.2.1"); got != "" {
			t.Errorf("two wait for proof, and %q is called", got)
		}
		if err := h.Confirm(context.Background(), h.org, claimed); err != nil {
			t.Fatal(err)
		}
		if got := h.ownerFrom(t, "192.0.2.1"); got != h.org {
			t.Errorf("confirmed, and %q is called", got)
		}
		if err := h.Confirm(context.Background(), mallory.org, claimed); err != nil {
			t.Fatal(err)
		}
		if got := h.ownerFrom(t, "192.0.2.1"); got != mallory.org {
			t.Errorf("the later proof does not win: %q is called", got)
		}
	})
}

func TestClaim_FirstCallProves(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		mallory := h.competitor(t, "192.0.2.1", true)
		id := h.add(claimed, "").Want(202).Text("id")
		if told := h.allocated(t, claimed); told != 0 {
			t.Errorf("told %d times before its proof", told)
		}
		if got := h.ownerFrom(t, "192.0.2.1"); got != h.org {
			t.Fatalf("the only entry is not called: %q", got)
		}
		if a := h.do("GET", "/numbers/"+id, nil).Want(200); a.Text("status") != "active" || a.At("status_detail") != nil {
			t.Errorf("after a call: %s", a.Bytes)
		}
		if told := h.allocated(t, claimed); told != 1 {
			t.Errorf("told %d times", told)
		}
		mallory.claim().Want(202)
		if got := h.ownerFrom(t, "192.0.2.1"); got != h.org {
			t.Errorf("the number was proven, and %q is called", got)
		}
	})
}

// An active number that moves to a shared carrier has to be proven there.
func TestClaim_MoveToSharedCarrier(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	mallory := h.competitor(t, "192.0.2.1", true)
	own := mallory.do("POST", "/trunks", `{"name":"own","host":"198.51.100.1"}`).Want(201).Text("id")
	id := mallory.do("POST", "/numbers", fmt.Sprintf(`{"number":%q,"trunk_id":%q}`, claimed, own)).Want(201).Text("id")
	h.add(claimed, "").Want(202)
	if got := h.ownerFrom(t, "192.0.2.1"); got != h.org {
		t.Fatalf("%q is called", got)
	}
	a := mallory.do("PATCH", "/numbers/"+id, fmt.Sprintf(`{"trunk_id":%q}`, mallory.trunk)).Want(200)
	if a.Text("status") != "pending" {
		t.Errorf("moved: %s", a.Bytes)
	}
	if got := h.ownerFrom(t, "192.0.2.1"); got != h.org {
		t.Errorf("%q takes the calls", got)
	}
	if a = mallory.do("PATCH", "/numbers/"+id, fmt.Sprintf(`{"trunk_id":%q}`, own)).Want(200); a.Text("status") != "active" {
		t.Errorf("moved back: %s", a.Bytes)
	}
}
