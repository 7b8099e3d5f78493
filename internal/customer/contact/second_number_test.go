package contact_test

import (
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// TestLookup_EachNumberOfContact: a contact is found by each of its numbers, also by one that was added later.
//
// https://github.com/frappe/crm/issues/1363
func TestLookup_EachNumberOfContact(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.do("POST", "/contacts", `{"first_name":"Ada","phones":[{"number":"+442079460018","label":"work"},
			{"number":"07700 900123","label":"mobile"}]}`).Want(201).Text("id")
		h.lookup("+447700900124").Want(404)
		h.do("PATCH", "/contacts/"+id, `{"phones":[{"number":"+442079460018"},{"number":"+447700900123"},
			{"number":"+447700900124","label":"home"}]}`).Want(200)
		for _, number := range []string{"+442079460018", "+447700900123", "+447700900124"} {
			if a := h.lookup(number).Want(200); a.Text("contact_id") != id || a.Text("match") != "exact" {
				t.Errorf("%s: %s", number, a.Bytes)
			}
		}
	})
}
