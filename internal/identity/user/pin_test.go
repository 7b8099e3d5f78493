package user_test

import (
	"context"
	"testing"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

func TestPINFault_GuessablePINs(t *testing.T) {
	t.Parallel()
	for pin, ok := range map[string]bool{"2580": true, "19370": true, "1234567891": true, "123": false, "12345678901": false, "12a4": false, "0000": false,
		"77777": false, "1234": false, "7890": false, "4321": false, "2109": false, "0101": false, "1010": false, "1012": true} {
		if fault := user.PINFault(pin, "101"); (fault == "") != ok {
			t.Errorf("%s: %q", pin, fault)
		}
	}
}

func TestPIN_StoredAndNeverReturned(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		m := &mailbox{pin: "?"}
		h := newFixture(t, d, func(c *user.Config) { c.Mailboxes = m })
		path := "/users/" + h.do("POST", "/users", `{"email":"a@example.com","first_name":"Ada","extension":"4711"}`).Want(201).Text("id")
		h.do("PATCH", path, `{"voicemail":{"enabled":true,"pin":"4711"}}`).Want(422).Refused("validation_failed", "voicemail.pin invalid_pin")
		if m.pin != "?" {
			t.Errorf("a refused PIN was kept: %q", m.pin)
		}
		a := h.do("PATCH", path, `{"voicemail":{"enabled":true,"pin":"2580"}}`).Want(200)
		if a.At("voicemail.pin_set") != true || a.Has("voicemail", "pin") || m.pin != "2580" || m.org != h.org {
			t.Errorf("kept %q, shown %s", m.pin, a.Bytes)
		}
		m.pin = "?"
		if a = h.do("PATCH", path, `{"voicemail":{"email_notify":true}}`).Want(200); a.At("voicemail.pin_set") != true || m.pin != "?" {
			t.Errorf("kept %q, shown %s", m.pin, a.Bytes)
		}
		if a = h.do("PATCH", path, `{"voicemail":{"pin":null}}`).Want(200); a.At("voicemail.pin_set") != false || m.pin != "" || m.org != h.org {
			t.Errorf("kept %q, shown %s", m.pin, a.Bytes)
		}
	})
}

// The destination of a forwarding may be removed later. The user can still change the PIN by phone.
func TestSetPIN_ForwardDestinationRemoved(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		all := &destinations{}
		h := newFixture(t, d, func(c *user.Config) { c.Destinations = all })
		id := h.do("POST", "/users", `{"email":"a@example.com","first_name":"Ada"}`).Want(201).Text("id")
		h.do("PATCH", "/users/"+id, `{"forward":{"busy":"queue:que_1"}}`).Want(200)
		all.fault = "there is no such queue"
		if err := h.SetPIN(context.Background(), h.org, id, "2580"); err != nil {
			t.Errorf("set the PIN: %v", err)
		}
	})
}
