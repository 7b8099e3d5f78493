package user_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// add adds an agent and returns the id.
func (h *fixture) add(name string) string {
	return h.do("POST", "/users", fmt.Sprintf(`{"email":"%s@example.com","first_name":%q}`, name, name)).Want(201).Text("id")
}

// keyOf returns the principal of a key of a user with these scopes.
func (h *fixture) keyOf(id string, scopes ...access.Scope) access.Principal {
	p := optest.Admin(h.org)
	p.UserID, p.Scopes, p.Role = id, scopes, "agent"
	return p
}

// count returns the number of rows that a statement counts. Its first argument is the organisation.
func (h *fixture) count(t *testing.T, text string) (n int) {
	t.Helper()
	if err := h.d.Read(context.Background()).QueryRow(context.Background(), text, h.org).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOwnSettings_ChangedByTheirUser reads and changes settings with a key without a scope.
func TestOwnSettings_ChangedByTheirUser(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ada, bob := h.add("ada"), h.add("bob")
		key := h.keyOf(ada)
		first := h.server.Do(key, "GET", "/me/settings", nil).Want(200)
		if first.At("forward.no_answer_seconds") != nil || first.Text("ring_strategy") != "all_devices" || first.Header.Get("ETag") == "" {
			t.Errorf("before any change: %s", first.Bytes)
		}
		h.now = h.now.Add(time.Second)
		changed := h.server.Do(key, "PATCH", "/me/settings", `{"language":"de","timezone":"Europe/Berlin","ring_strategy":"in_order",
			"forward":{"no_answer":"ext:101","no_answer_seconds":5},"voicemail":{"enabled":true,"pin":"2580"}}`,
			"If-Match: "+first.Header.Get("ETag")).Want(200)
		if changed.Text("language") != "de" || changed.At("forward.no_answer_seconds") != float64(5) || changed.At("voicemail.pin_set") != true ||
			strings.Contains(string(changed.Bytes), "2580") {
			t.Errorf("after a change: %s", changed.Bytes)
		}
		h.server.Do(key, "PATCH", "/me/settings", `{"language":"fr"}`, "If-Match: "+first.Header.Get("ETag")).Want(412).
			Refused("version_conflict")
		u := h.do("GET", "/users/"+ada, nil).Want(200)
		if u.Text("timezone") != "Europe/Berlin" || u.Text("forward.no_answer") != "ext:101" || u.At("voicemail.enabled") != true || u.Text("role") != "agent" {
			t.Errorf("the administrator sees %s", u.Bytes)
		}
		if other := h.do("GET", "/users/"+bob, nil).Want(200); other.At("forward.no_answer") != nil || other.At("language") != nil {
			t.Errorf("another user was changed: %s", other.Bytes)
		}
		h.server.Do(key, "PATCH", "/me/settings", `{"forward":{"no_answer_seconds":null}}`).Want(200)
		if u := h.do("GET", "/users/"+ada, nil); u.At("forward.no_answer_seconds") != nil || u.Text("forward.no_answer") != "ext:101" {
			t.Errorf("after no_answer_seconds was removed: %s", u.Bytes)
		}
	})
}

// TestOwnSettings_GiveNoRights refuses what a person must not decide, and values that users.update refuses.
func TestOwnSettings_GiveNoRights(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ada, bob := h.add("ada"), h.add("bob")
		key := h.keyOf(ada)
		for member, value := range map[string]string{"role": `"owner"`, "extension": `"199"`, "queue_ids": `["que_1"]`, "email": `"x@example.com"`,
			"status": `"active"`, "skills": `{"french":9}`, "recording_mode": `"off"`, "id": `"` + bob + `"`, "dnd": `{"enabled":true}`} {
			h.server.Do(key, "PATCH", "/me/settings", `{"`+member+`":`+value+`}`).Want(400).Refused("unknown_field")
		}
		for body, wrong := range map[string]string{
			`{"forward":{"no_answer_seconds":4}}`:               "forward.no_answer_seconds out_of_range",
			`{"forward":{"no_answer_seconds":121}}`:             "forward.no_answer_seconds out_of_range",
			`{"voicemail":{"greeting_audio_id":"aud_unknown"}}`: "voicemail.greeting_audio_id not_found",
			`{"outbound_number_id":"num_unknown"}`:              "outbound_number_id not_found",
			`{"voicemail":{"pin":"1111"}}`:                      "voicemail.pin invalid_pin",
		} {
			h.server.Do(key, "PATCH", "/me/settings", body).Want(422).Refused("validation_failed", wrong)
			h.do("PATCH", "/users/"+ada, body).Want(422).Refused("validation_failed", wrong)
		}
		h.server.Do(key, "PATCH", "/users/"+ada, `{"language":"de"}`).Want(403).Refused("insufficient_scope")
		h.server.Do(key, "PATCH", "/users/"+bob, `{"forward":{"always":"ext:100"}}`).Want(403).Refused("insufficient_scope")
		h.do("GET", "/me/settings", nil).Want(404).Refused("not_found")
		h.do("PATCH", "/me/settings", `{"language":"de"}`).Want(404).Refused("not_found")
	})
}

// TestOwnSettings_Programs refuses changes of a program that acts for the user and may only read.
func TestOwnSettings_Programs(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	program := h.keyOf(h.add("ada"), access.CallsRead)
	program.Kind = access.OAuthToken
	h.server.Do(program, "GET", "/me/settings", nil).Want(200)
	h.server.Do(program, "PATCH", "/me/settings", `{"language":"de"}`).Want(403).Refused("insufficient_scope")
	program.Scopes = []access.Scope{access.CallsWrite}
	h.server.Do(program, "PATCH", "/me/settings", `{"language":"de"}`).Want(200)
}

// TestDND_OwnOnly expects that a user without a scope may switch their own do-not-disturb, and not that of another user.
func TestDND_OwnOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ada, bob := h.add("ada"), h.add("bob")
		key := h.keyOf(ada)
		h.server.Do(key, "PUT", "/users/"+ada+"/dnd", `{"enabled":true}`).Want(200)
		if a := h.server.Do(key, "GET", "/me/settings", nil).Want(200); a.At("dnd.enabled") != true {
			t.Errorf("settings: %s", a.Bytes)
		}
		h.server.Do(key, "PUT", "/users/"+bob+"/dnd", `{"enabled":true}`).Want(403).Refused("insufficient_scope")
	})
}

// TestPreferences_KeptPerPerson stores an object per user, with a version, until the user is removed.
func TestPreferences_KeptPerPerson(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ada, bob := h.keyOf(h.add("ada")), h.keyOf(h.add("bob"))
		none := h.server.Do(ada, "GET", "/me/preferences", nil).Want(200)
		if strings.TrimSpace(string(none.Bytes)) != "{}" || none.Header.Get("ETag") == "" {
			t.Errorf("before any change: %q, ETag %q", none.Bytes, none.Header.Get("ETag"))
		}
		const kept = `{"columns":["from_number","mood"],"limit":12345678901234567890,"text":"a < b & c","wallboard":{"queue":{"wait":30}}}`
		first := h.server.Do(ada, "PUT", "/me/preferences", kept, "If-Match: "+none.Header.Get("ETag")).Want(200)
		again := h.server.Do(ada, "GET", "/me/preferences", nil).Want(200)
		if got := strings.TrimSpace(string(again.Bytes)); got != kept || again.Header.Get("ETag") != first.Header.Get("ETag") {
			t.Errorf("kept %s as %s, want %s as %s", got, again.Header.Get("ETag"), kept, first.Header.Get("ETag"))
		}
		h.server.Do(ada, "GET", "/me/preferences", nil, "If-None-Match: "+first.Header.Get("ETag")).Want(304)
		h.server.Do(ada, "PUT", "/me/preferences", `{}`, "If-Match: "+none.Header.Get("ETag")).Want(412).Refused("version_conflict")
		h.server.Do(bob, "PUT", "/me/preferences", `{"theme":"dark"}`).Want(200)
		if a := h.server.Do(ada, "GET", "/me/preferences", nil).Want(200); a.Header.Get("ETag") != first.Header.Get("ETag") {
			t.Errorf("another user's preferences changed those of the first: %s", a.Bytes)
		}
		h.server.Do(ada, "PUT", "/me/preferences", `{"theme":"light"}`, "If-Match: "+first.Header.Get("ETag")).Want(200)
		if a := h.server.Do(ada, "GET", "/me/preferences", nil).Want(200); a.Has("", "columns") || a.Text("theme") != "light" {
			t.Errorf("the object was not replaced as a whole: %s", a.Bytes)
		}
		h.do("DELETE", "/users/"+ada.UserID, nil).Want(204)
		if n := h.count(t, `SELECT COUNT(*) FROM user_preferences WHERE org_id = $1`); n != 1 {
			t.Errorf("%d rows after one of two users was removed", n)
		}
		h.do("GET", "/me/preferences", nil).Want(404).Refused("not_found")
		h.do("PUT", "/me/preferences", `{}`).Want(404).Refused("not_found")
	})
}

// TestPreferences_Limited refuses what is no object and what is too large.
func TestPreferences_Limited(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	ada := h.keyOf(h.add("ada"))
	object := func(size int) string { return `{"x":"` + strings.Repeat("<", size-len(`{"x":""}`)) + `"}` }
	h.server.Do(ada, "PUT", "/me/preferences", object(32<<10)).Want(200)
	h.server.Do(ada, "PUT", "/me/preferences", object(32<<10+1)).Want(413).Refused("payload_too_large")
	for _, body := range []string{`[]`, `"x"`, `7`, `null`} {
		if a := h.server.Do(ada, "PUT", "/me/preferences", body); a.Status != 422 && a.Status != 400 {
			t.Errorf("%s: %d %s", body, a.Status, a.Bytes)
		}
	}
	h.server.Do(ada, "PUT", "/me/preferences", `{"a":1,"a":2}`).Want(400).Refused("malformed_json")
}

// TestForward_RingTime returns the time that a user has chosen.
func TestForward_RingTime(t *testing.T) {
	t.Parallel()
	seconds := 7
	if got := (user.Forward{}).RingTime(); got != 0 {
		t.Errorf("without a choice %s", got)
	}
	if got := (user.Forward{NoAnswerSeconds: &seconds}).RingTime(); got.Seconds() != 7 {
		t.Errorf("got %s", got)
	}
}
