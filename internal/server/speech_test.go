package server

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op/optest"
)

// search returns the texts that a search finds, best first.
func (h *testPlatform) search(who access.Principal, body string) (texts []string) {
	h.t.Helper()
	for _, r := range h.server.Do(who, "POST", "/memory/search", body).Want(200).At("results").([]any) {
		texts = append(texts, fmt.Sprint(r.(map[string]any)["text"]))
	}
	return texts
}

// addContact creates a contact with a number and a note, and returns its id.
func (h *testPlatform) addContact(who access.Principal, name, number, note string) string {
	h.t.Helper()
	id := h.server.Do(who, "POST", "/contacts", fmt.Sprintf(`{"first_name":%q,"phones":[{"number":%q}]}`, name, number)).Want(201).Text("id")
	h.server.Do(who, "POST", "/contacts/"+id+"/notes", fmt.Sprintf(`{"body":%q}`, note)).Want(201)
	return id
}

// addMessage adds a message with a number to the memory.
func (h *testPlatform) addMessage(id, number, text string) {
	h.t.Helper()
	h.in(func(ctx context.Context, tx db.Querier) error {
		return h.memory.AddText(ctx, tx, h.org, memory.TextEntry{Kind: memory.KindSMS, Of: "sms_" + id, Phone: number, Text: text,
			At: time.Now()})
	})
}

func (h *testPlatform) in(f func(ctx context.Context, tx db.Querier) error) {
	h.t.Helper()
	if err := h.db.TxContext(context.Background(), f); err != nil {
		h.t.Fatal(err)
	}
}

func TestContactNotes_SearchedAndErased(t *testing.T) {
	t.Parallel()
	eachHouse(t, func(t *testing.T, h *testPlatform) {
		h.t = t
		const other = "+442079460099"
		admin := optest.Admin(h.org)
		o, err := h.orgs.Create(context.Background(), "Elsewhere", "GB")
		if err != nil {
			t.Fatal(err)
		}
		foreign := optest.Admin(o.ID)
		ada := h.addContact(admin, "Ada", known, "Is allergic to peanuts")
		bob := h.addContact(admin, "Bob", other, "Keeps peanuts in the warehouse")
		h.addMessage("1", known, "Peanuts again, please")
		h.addMessage("2", other, "No peanuts today")
		abroad := h.addContact(foreign, "Eve", known, "Sells peanuts")

		a := h.server.Do(admin, "POST", "/memory/search", `{"query":"allergic to peanuts","kinds":["note"]}`).Want(200)
		if a.Text("results.0.text") != "Is allergic to peanuts" || a.Text("results.0.contact.id") != ada || a.Text("results.0.contact.name") != "Ada" ||
			a.At("results.0.call_id") != nil || a.Text("results.0.phone") != "" {
			t.Errorf("the note is %s", a.Body)
		}
		item := h.server.Do(admin, "GET", "/memory/items/"+a.Text("results.0.id"), "").Want(200)
		if item.Text("contact_id") != ada || item.Text("kind") != "note" {
			t.Errorf("the item is %s", item.Body)
		}
		h.server.Do(foreign, "GET", "/memory/items/"+a.Text("results.0.id"), "").Want(404)
		for body, want := range map[string][]string{
			`{"query":"peanuts","contact_id":"` + ada + `"}`:                         {"Is allergic to peanuts", "Peanuts again, please"},
			`{"query":"peanuts","contact_id":"` + bob + `"}`:                         {"Keeps peanuts in the warehouse", "No peanuts today"},
			`{"query":"peanuts","contact_id":"` + bob + `","kinds":["sms"]}`:         {"No peanuts today"},
			`{"query":"peanuts","contact_id":"` + ada + `","phone":"` + known + `"}`: {"Peanuts again, please"},
			`{"query":"peanuts","phone":"` + other + `"}`:                            {"Keeps peanuts in the warehouse", "No peanuts today"},
			`{"query":"peanuts","contact_id":"` + abroad + `"}`:                      nil,
		} {
			got := h.search(admin, body)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s finds %q, want %q", body, got, want)
			}
		}
		if got := h.search(foreign, `{"query":"peanuts"}`); !slices.Equal(got, []string{"Sells peanuts"}) {
			t.Errorf("the other organisation finds %q", got)
		}

		h.server.Do(admin, "POST", "/contacts/"+ada+"/merge", `{"from_id":"`+bob+`"}`).Want(200)
		if got := h.search(admin, `{"query":"peanuts","contact_id":"`+ada+`"}`); len(got) != 4 {
			t.Errorf("after both were made one it finds %q", got)
		}
		if got := h.search(admin, `{"query":"peanuts","contact_id":"`+bob+`"}`); len(got) != 0 {
			t.Errorf("who is gone has %q", got)
		}
		h.server.Do(admin, "DELETE", "/contacts/"+ada, "").Want(204)
		if got := h.search(admin, `{"query":"peanuts","kinds":["note"]}`); len(got) != 0 {
			t.Errorf("notes of who is gone: %q", got)
		}
	})
}

func TestErasure_NotesOfContact(t *testing.T) {
	t.Parallel()
	eachHouse(t, func(t *testing.T, h *testPlatform) {
		h.t = t
		admin := optest.Admin(h.org)
		h.addContact(admin, "Ada", known, "Dreams of Zanzibar")
		h.addContact(admin, "Bob", "+442079460099", "In Zanzibar ring "+known[:3]+" ("+known[3:6]+") "+known[6:9]+"-"+known[9:])
		h.addContact(admin, "Cyd", "+442079460077", "Was born in Zanzibar")
		if got := h.search(admin, `{"query":"Zanzibar"}`); len(got) != 3 {
			t.Fatalf("found %q", got)
		}
		for range 3 { // erasure runs until a keeper erases nothing
			h.in(func(ctx context.Context, tx db.Querier) error {
				if _, err := h.memory.EraseFacts(ctx, tx, h.org, known); err != nil {
					return err
				}
				_, err := h.contacts.EraseForNumber(ctx, tx, h.org, known)
				return err
			})
		}
		if got := h.search(admin, `{"query":"Zanzibar"}`); !slices.Equal(got, []string{"Was born in Zanzibar"}) {
			t.Errorf("found %q afterwards", got)
		}
		var left int
		err := h.db.Read(context.Background()).QueryRow(context.Background(), `SELECT count(*) FROM memory_facts WHERE org_id = $1`,
			h.org).Scan(&left)
		if err != nil || left != 1 {
			t.Errorf("%d are left, %v", left, err)
		}
	})
}
