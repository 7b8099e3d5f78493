package crm

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

func book(r *rig.Radicale, more ...any) map[string]any {
	s := map[string]any{"url": r.Book, "auth": map[string]any{"type": "basic", "username": r.User, "password": r.Password}}
	for i := 0; i+1 < len(more); i += 2 {
		s[more[i].(string)] = more[i+1]
	}
	return s
}

// notice notifies a connection that its list has changed.
func (c company) notice(id string) {
	c.T.Helper()
	address, _ := c.connection(id)["notice_url"].(string)
	answer, err := http.Post(address, "text/plain", strings.NewReader("anything"))
	if err != nil {
		c.T.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != 202 {
		c.T.Fatalf("the notice was answered %d", answer.StatusCode)
	}
}

// An address book is copied once. After that only changes are read, as soon as the address book sends a notice.
func TestCardDAV_IncrementalSync(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		people := crowd("7946", "Ada", 300)
		r := rig.StartRadicale(t, people)
		c := newCompany(s)
		id := c.connect("carddav", "Book", book(r))
		c.copied(id, 300)
		c.finds("7946", "Book", people, 7)
		if w := c.lookup("email", "ada7@example.com"); w.Name != "Ada 7" {
			t.Errorf("by address %+v", w)
		}
		r.Asked()
		r.Put(rig.Person{ID: "new", Name: "Bert New", Company: "Co", Phones: []string{"(020) 7946-9999"}})
		gone := c.lookup("phone", e164("7946", 5)).External_id
		r.Remove(gone[strings.LastIndex(gone, "/")+1:])
		c.notice(id)
		rig.Until(t, "Bert New", time.Minute, func() bool { return c.lookup("phone", "+442079469999").Name == "Bert New" })
		if w := c.lookup("phone", e164("7946", 5)); w.Status != 404 {
			t.Errorf("who was deleted there is %+v", w)
		}
		if asked := r.Asked(); slices.Contains(asked, "REPORT addressbook-query") || !slices.Contains(asked, "REPORT addressbook-multiget") {
			t.Errorf("asked %v", asked)
		}
		c.copied(id, 300)
		r.Put(rig.Person{ID: "new", Name: "Bertram New", Phones: []string{"020 7946 9998"}})
		for range 20 { // many notices, one reading
			c.notice(id)
		}
		rig.Until(t, "Bertram New", time.Minute, func() bool { return c.lookup("phone", "+442079469998").Name == "Bertram New" })
		if w := c.lookup("phone", "+442079469999"); w.Status != 404 {
			t.Errorf("the number he had finds %+v", w)
		}
		if asked := r.Asked(); len(asked) > 8 {
			t.Errorf("20 notices made it ask %v", asked)
		}
	})
}

// A change notice is accepted only at its complete address, which contains a secret.
func TestChangeNotice_NeedsSecret(t *testing.T) {
	t.Parallel()
	r := rig.StartRadicale(t, crowd("7946", "Ada", 1))
	c := newCompany(rig.Shared(t, rig.Options{Env: quiet}))
	address := c.connection(c.connect("carddav", "Book", book(r)))["notice_url"].(string)
	for _, wrong := range []string{address[:len(address)-1], address + "x", strings.Replace(address, "crm_", "crm_x", 1)} {
		answer, err := http.Post(wrong, "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != 404 {
			t.Errorf("%s: %d", wrong, answer.StatusCode)
		}
	}
}

// ref returns the sync state of a contact with its only system.
func (c company) ref(contact string) map[string]any {
	c.T.Helper()
	refs, _ := c.Do("GET", "/contacts/"+contact, nil).JSON()["external_refs"].([]any)
	if len(refs) != 1 {
		return nil
	}
	return refs[0].(map[string]any)
}

func (c company) synced(contact, status string) map[string]any {
	c.T.Helper()
	rig.Until(c.T, "the contact to be "+status, time.Minute, func() bool { r := c.ref(contact); return r != nil && r["sync_status"] == status })
	return c.ref(contact)
}

// Contacts are written to an address book. Fields that other programs keep on the cards stay, and changes on either
// side are distinguished.
func TestCardDAV_ContactsWritten(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		r := rig.StartRadicale(t, crowd("7946", "Ada", 3))
		c := newCompany(s)
		id := c.connect("carddav", "Book", book(r, "write", true))
		c.copied(id, 3)
		var made struct{ ID string }
		c.Want(201, "POST", "/contacts", map[string]any{"first_name": "Grace", "last_name": "Hopper; Rear Admiral", "company": "Navy, US", "title": "Captain",
			"phones": []map[string]any{{"number": "020 7946 8888"}}, "emails": []map[string]any{{"value": "grace@example.com"}}, "tags": []string{"gold"}}, &made)
		path := c.synced(made.ID, "synced")["external_id"].(string)
		for _, line := range []string{"FN:Grace Hopper\\; Rear Admiral", "N:Hopper\\; Rear Admiral;Grace;;;", "ORG:Navy\\, US", "TITLE:Captain", "+442079468888", "grace@example.com"} {
			if card := r.Card(path); !strings.Contains(card, line) {
				t.Errorf("no %s in\n%s", line, card)
			}
		}
		// the card gets a number, a note and a picture there, and loses its address; here the title changes
		card := strings.Replace(r.Card(path), "END:VCARD", "TEL;TYPE=HOME:020 7946 7777\r\nNOTE:Likes clocks\r\nX-LUCKY:7\r\nEND:VCARD", 1)
		lines := slices.DeleteFunc(strings.Split(strings.ReplaceAll(card, "\r\n", "\n"), "\n"), func(l string) bool { return strings.HasPrefix(l, "EMAIL") })
		r.Write(path[strings.LastIndex(path, "/")+1:], strings.Join(lines, "\r\n"))
		c.Want(200, "PATCH", "/contacts/"+made.ID, map[string]any{"title": "Admiral"}, nil)
		rig.Until(t, "the title", time.Minute, func() bool { return strings.Contains(r.Card(path), "TITLE:Admiral") })
		card = r.Card(path)
		for _, kept := range []string{"020 7946 7777", "Likes clocks", "X-LUCKY:7", "+442079468888"} {
			if !strings.Contains(card, kept) {
				t.Errorf("%s is lost:\n%s", kept, card)
			}
		}
		if strings.Contains(card, "grace@example.com") {
			t.Errorf("what was taken away there came back:\n%s", card)
		}
		c.synced(made.ID, "synced")
		c.conflict(r, made.ID, path)
	})
}

// conflict changes the title on both sides. The title of the address book wins and the contact shows the conflict;
// the next change here is written.
func (c company) conflict(r *rig.Radicale, id, path string) {
	c.T.Helper()
	r.Write(path[strings.LastIndex(path, "/")+1:], strings.Replace(r.Card(path), "TITLE:Admiral", "TITLE:Commodore", 1))
	c.Want(200, "PATCH", "/contacts/"+id, map[string]any{"title": "Rear Admiral", "company": "Navy"}, nil)
	ref := c.synced(id, "conflict")
	card := r.Card(path)
	if why, _ := ref["error"].(string); !strings.Contains(why, "title") || !strings.Contains(card, "TITLE:Commodore") || !strings.Contains(card, "ORG:Navy\r\n") {
		c.T.Errorf("%v\n%s", ref, card)
	}
	c.Want(200, "PATCH", "/contacts/"+id, map[string]any{"title": "Vice Admiral"}, nil)
	c.synced(id, "synced")
	if card := r.Card(path); !strings.Contains(card, "TITLE:Vice Admiral") {
		c.T.Errorf("the next change is not there:\n%s", card)
	}
	r.Remove(path[strings.LastIndex(path, "/")+1:])
	c.Want(200, "PATCH", "/contacts/"+id, map[string]any{"title": "Retired"}, nil)
	if ref := c.synced(id, "failed"); !strings.Contains(ref["error"].(string), "deleted") {
		c.T.Errorf("deleted there: %v", ref)
	}
}
