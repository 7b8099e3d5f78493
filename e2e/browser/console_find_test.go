package browser

import (
	"testing"
	"time"

	"soniq/e2e/limit"
)

// By keys alone a person finds colleagues, contacts, queues, calls by number, pages and actions. Kinds that the scopes do not allow are
// not asked for.
func TestConsole_Finds(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 2*time.Minute, "a browser searches, and two pages are examined in three sizes and colours")
	office := newOffice(t)
	p, user := openConsole(office, "agent", "/console/calls", "440")
	bob := office.AddUser("Bob")
	office.AddQueue(map[string]any{"name": "Billing"}, user)
	office.AddCarrier(bob.ID, nil)
	var contact struct{ ID string }
	office.Want(201, "POST", "/contacts", map[string]any{"first_name": "Ada", "last_name": "Byron", "company": "Harbor Dental",
		"phones": []map[string]any{{"number": "+12125550101"}}}, &contact)
	p.shows("Live")
	p.click("button", "Turn on the phone")
	p.has("button", "Phone ready")

	p.keyWith("k", ctrl)
	p.has("dialog", "Find people, calls, pages and actions")
	p.offers("Desk")
	p.checked("find-empty")
	p.write("bob")
	p.offers("Bob")
	p.checked("find-people")
	p.key("Enter")
	p.at("/console/team?q=Bob")
	p.hasNot("dialog", "")
	p.has("heading", "Team")

	p.keyWith("k", ctrl)
	p.has("dialog", "")
	p.write("harbor")
	p.offers("Ada Byron")
	p.key("Enter")
	p.at("/console/contacts/" + contact.ID)

	p.keyWith("k", ctrl)
	p.has("dialog", "")
	p.write("set me away")
	p.offers("Set me: Away")
	p.key("Enter")
	p.has("button", "Presence: Away")
	p.hasNot("dialog", "")

	p.click("button", "Find")
	p.write("billing")
	p.offers("Billing")
	p.key("Escape")
	p.hasNot("dialog", "")

	p.keyWith("k", ctrl)
	p.has("dialog", "")
	p.write("nobody of that name")
	p.shows("Nothing was found for “nobody of that name”.")
	p.key("Escape")
	p.hasNot("dialog", "")
	for _, told := range p.asked() {
		if told == "GET /api/v1/numbers" {
			t.Error("Find asks for numbers without the scope")
		}
	}
	p.faultless()
}
