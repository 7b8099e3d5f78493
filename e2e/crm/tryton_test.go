package crm

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

func trytonSettings(d *rig.Trytond) map[string]any {
	return map[string]any{"url": "http://" + d.Address, "database": d.Database, "username": d.User, "password": d.Password}
}

// messages returns the notes of a party.
func messages(d *rig.Trytond, party string) (all []string) {
	var notes []struct{ Message string }
	d.Call("model.ir.note.search_read", &notes, []any{[]any{"resource", "=", "party.party," + party}}, 0, 50, nil, []string{"message"})
	for _, n := range notes {
		all = append(all, n.Message)
	}
	return all
}

// Tryton answers caller lookups, and stores contacts and notes. The server logs in again when a session has ended.
func TestTryton_LookupAndWrite(t *testing.T) {
	t.Parallel()
	d := rig.StartTrytond(t)
	var made []int
	d.Call("model.party.party.create", &made, []any{map[string]any{"name": "Ada Lovelace", "contact_mechanisms": []any{[]any{"create",
		[]any{map[string]any{"type": "phone", "value": "+44 20 7946 0018"}, map[string]any{"type": "email", "value": "ada@example.com"}}}}}})
	c := newCompany(rig.Shared(t, rig.Options{Env: quiet}))
	id := c.connect("tryton", "Tryton", trytonSettings(d), "timeout_ms", 5000)
	if w := c.ask("phone", "020 7946 0018"); w.Name != "Ada Lovelace" || w.Source != "Tryton" || w.Match != "exact" {
		t.Fatalf("by number %+v", w)
	}
	if w := c.ask("email", "Ada@Example.com"); w.Name != "Ada Lovelace" {
		t.Errorf("by address %+v", w)
	}
	if w := c.ask("email", "%@example.com"); w.Status != 404 {
		t.Errorf("a pattern finds %+v", w)
	}
	d.EndSessions()
	if w := c.ask("phone", "020 7946 0018", "fresh=true"); w.Name != "Ada Lovelace" {
		t.Errorf("after its session %+v", w)
	}
	c.contactsIn(d)
	c.Want(200, "PATCH", "/crm/connections/"+id, map[string]any{"settings": map[string]any{"password": "guess"}}, nil)
	c.ask("phone", "020 7946 0018", "fresh=true")
	if x := c.connection(id); x["status"] != "auth_required" {
		t.Errorf("with a wrong password %v", x)
	}
}

// contactsIn writes contacts and a note.
func (c company) contactsIn(d *rig.Trytond) {
	c.T.Helper()
	var grace, ada struct{ ID string }
	c.Want(201, "POST", "/contacts", map[string]any{"first_name": "Grace", "last_name": "Hopper", "phones": []map[string]any{{"number": "020 7946 8888"}},
		"emails": []map[string]any{{"value": "grace@example.com"}}}, &grace)
	party := c.synced(grace.ID, "synced")["external_id"].(string)
	c.Want(200, "PATCH", "/contacts/"+grace.ID, map[string]any{"last_name": "Murray", "phones": []map[string]any{{"number": "020 7946 7777"}}}, nil)
	rig.Until(c.T, "the change", time.Minute, func() bool {
		return c.ask("phone", "+442079467777", "fresh=true").External_id == party && c.ref(grace.ID)["sync_status"] == "synced"
	})
	var values []struct{ Type, Value string }
	d.Call("model.party.contact_mechanism.search_read", &values, []any{[]any{"party.name", "=", "Grace Murray"}}, 0, 10, nil, []string{"type", "value"})
	if len(values) != 2 {
		c.T.Errorf("the party has %v", values)
	}
	c.Want(201, "POST", "/contacts/"+grace.ID+"/notes", map[string]any{"body": "Found a moth."}, nil)
	rig.Until(c.T, "the note", time.Minute, func() bool { return len(messages(d, party)) == 1 })
	if m := messages(d, party); !strings.HasPrefix(m[0], "Found a moth.") {
		c.T.Errorf("notes %q", m)
	}
	// an existing party is not created again
	c.Want(201, "POST", "/contacts", map[string]any{"first_name": "Ada", "last_name": "Lovelace", "phones": []map[string]any{{"number": "020 7946 0018"}, {"number": "020 7946 0020"}}}, &ada)
	if ref := c.synced(ada.ID, "synced"); ref["external_id"] != "1" && ref["external_id"] != "2" {
		c.T.Errorf("Ada is %v", ref)
	}
	var all []int
	d.Call("model.party.party.search", &all, []any{[]any{"name", "=", "Ada Lovelace"}}, 0, 10, nil)
	if len(all) != 1 {
		c.T.Errorf("there are %d of Ada", len(all))
	}
}
