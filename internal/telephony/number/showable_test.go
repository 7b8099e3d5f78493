package number_test

import (
	"fmt"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// TestListShowable_ActiveNumbersAndChoice lists what the own calls may show, and accepts exactly these as a choice.
func TestListShowable_ActiveNumbersAndChoice(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		p := optest.Admin(h.org)
		p.UserID, p.Scopes = h.ada, nil
		first := h.add("+442079460001", "").Want(201).Text("id")
		own := h.add("+442079460002", fmt.Sprintf(`,"user_id":%q`, h.ada)).Want(201).Text("id")
		gone := h.add("+442079460003", "").Want(201).Text("id")
		h.do("DELETE", "/numbers/"+gone+"?confirm=442079460003", nil).Want(204)
		shown := func() string {
			t.Helper()
			a := h.server.Do(p, "GET", "/me/numbers?include_total=true", nil).Want(200)
			if a.At("total") != float64(2) || a.Text("data.0.id") != first || a.At("data.0.own") != false || a.At("data.1.own") != true {
				t.Fatalf("got %s", a.Bytes)
			}
			if a.At("data.0.shown") == true {
				return first
			}
			return a.Text("data.1.id")
		}
		if got := shown(); got != own {
			t.Errorf("without a choice %s is shown, want the own number %s", got, own)
		}
		h.server.Do(p, "PATCH", "/me/settings", fmt.Sprintf(`{"outbound_number_id":%q}`, first)).Want(200)
		if got := shown(); got != first {
			t.Errorf("%s is shown, want the chosen %s", got, first)
		}
		h.server.Do(p, "PATCH", "/me/settings", fmt.Sprintf(`{"outbound_number_id":%q}`, gone)).Want(422).
			Refused("validation_failed", "outbound_number_id not_found")
		h.do("GET", "/me/numbers", nil).Want(404).Refused("not_found")
	})
}
