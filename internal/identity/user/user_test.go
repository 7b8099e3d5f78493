package user_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/identity/user/usertest"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op/optest"
)

// fixture holds the services for a test of users.
type fixture struct {
	*user.Service
	d      *db.DB
	bus    *bus.Bus
	orgs   *org.Service
	org    string
	server *optest.Server
	now    time.Time
}

// newFixture returns the service. change sets dependencies in its configuration.
func newFixture(t *testing.T, d *db.DB, change ...func(*user.Config)) *fixture {
	t.Helper()
	h := &fixture{d: d, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return h.now }
	b := bus.New()
	h.bus, h.orgs = b, org.New(d, b, now)
	o, err := h.orgs.Create(context.Background(), "Acme", "DE")
	if err != nil {
		t.Fatal(err)
	}
	h.org = o.ID
	c := usertest.Config(d, h.orgs, &event.Outbox{DB: d, Bus: b, Clock: clock.Func(func() time.Time { return h.now })}, b, now)
	for _, f := range change {
		f(&c)
	}
	h.Service = user.New(c)
	h.server = optest.New(t, d, h.Operations()...)
	return h
}

func (h *fixture) do(method, path string, body any, header ...string) *optest.Answer {
	return h.server.Do(optest.Admin(h.org), method, path, body, header...)
}

func TestCreate_LowestFreeExtensionAndEvent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.do("POST", "/users", `{"email":"a@example.com","first_name":"Ada","extension":"101"}`).Want(201)
		a := h.do("POST", "/users", `{"email":"b@example.com","first_name":"Bob","last_name":"Byte"}`).Want(201)
		c := h.do("POST", "/users", `{"email":"c@example.com","first_name":"Cy"}`).Want(201)
		if a.Text("extension") != "100" || c.Text("extension") != "102" {
			t.Errorf("extensions %s and %s, want 100 and 102", a.Text("extension"), c.Text("extension"))
		}
		if a.Text("name") != "Bob Byte" || a.Text("role") != "agent" || a.Text("status") != "active" || a.Text("presence.status") != "offline" {
			t.Errorf("got %s", a.Bytes)
		}
		if got := a.Header.Get("Location"); got != "/api/v1/users/"+a.Text("id") {
			t.Errorf("location %q", got)
		}
		var kind, body string
		row := d.Read(context.Background()).QueryRow(context.Background(), `SELECT kind, body FROM events WHERE org_id = $1 ORDER BY id LIMIT 1`, h.org)
		if err := row.Scan(&kind, &body); err != nil || kind != "user.created" {
			t.Errorf("event %s, %v", kind, err)
		}
		var events int
		_ = d.Read(context.Background()).QueryRow(context.Background(), `SELECT COUNT(*) FROM events`).Scan(&events)
		if events != 3 {
			t.Errorf("%d events, want 3", events)
		}
	})
}

func TestExtension_EmergencyNumbersReserved(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), func(c *user.Config) { c.Extensions = reserved{"DE", "100"} })
	if a := h.do("POST", "/users", `{"email":"a@example.com","first_name":"Ada"}`).Want(201); a.Text("extension") != "101" {
		t.Errorf("got %s", a.Text("extension"))
	}
	h.do("POST", "/users", `{"email":"b@example.com","first_name":"Bob","extension":"100"}`).
		Refused("validation_failed", "extension reserved")
}

func TestCreate_ConcurrentExtensionsDiffer(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				a := h.do("POST", "/users", fmt.Sprintf(`{"email":"u%d@example.com","first_name":"U"}`, i))
				if a.Status != 201 {
					t.Errorf("status %d: %s", a.Status, a.Bytes)
				}
			})
		}
		all.Wait()
		for i := range 12 {
			if _, err := h.ByExtension(context.Background(), d.Read(context.Background()), h.org, strconv.Itoa(100+i)); err != nil {
				t.Errorf("extension %d: %v", 100+i, err)
			}
		}
	})
}

func TestCreate_ConflictNamesTakenValue(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		first := h.do("POST", "/users", `{"email":"Ada@example.com","first_name":"Ada","extension":"200"}`).Want(201)
		h.do("POST", "/users", `{"email":"ada@EXAMPLE.com","first_name":"Ada"}`).Want(409).Refused("already_exists")
		h.do("POST", "/users", `{"email":"b@example.com","first_name":"Bob","extension":"200"}`).Want(409).Refused("extension_taken")
		b := h.do("POST", "/users", `{"email":"b@example.com","first_name":"Bob"}`).Want(201)
		h.do("PATCH", "/users/"+b.Text("id"), `{"extension":"200"}`).Want(409).Refused("extension_taken")
		h.do("PATCH", "/users/"+b.Text("id"), `{"email":"ADA@example.com"}`).Want(409).Refused("already_exists")
		h.do("DELETE", "/users/"+first.Text("id"), nil).Want(204)
		h.do("PATCH", "/users/"+b.Text("id"), `{"extension":"200","email":"ada@example.com"}`).Want(200)
		other, _ := h.orgs.Create(context.Background(), "Other", "DE")
		h.server.Do(optest.Admin(other.ID), "POST", "/users", `{"email":"ada@example.com","first_name":"Ada","extension":"200"}`).Want(201)
		h.server.Do(optest.Admin(other.ID), "POST", "/users", `{"email":"eve@example.com","first_name":"Eve"}`).Want(201)
		h.do("POST", "/users", `{"email":"eve@example.com","first_name":"Eve","extension":"200"}`).Want(409).Refused("extension_taken")
		gone := h.do("POST", "/users", `{"email":"gone@example.com","first_name":"Gone"}`).Want(201)
		h.do("DELETE", "/users/"+gone.Text("id"), nil).Want(204)
		h.do("POST", "/users", `{"email":"gone@example.com","first_name":"Gone","extension":"200"}`).Want(409).Refused("extension_taken")
	})
}

func TestCreate_ListsEveryViolation(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.do("POST", "/users", `{"email":"Ada <a@example.com>","first_name":" ","role":"king","extension":"1x","timezone":"Mars",
		"language":"??","outbound_number_id":"num_none","queue_ids":["que_none"]}`).Want(422).
		Refused("validation_failed", "email invalid_email", "first_name invalid_length", "role invalid_value",
			"extension invalid_extension", "timezone invalid_timezone", "language invalid_language",
			"outbound_number_id not_found", "queue_ids not_found")
	h.do("POST", "/users", `{"email":"a@example.com","first_name":"A","rolle":"agent"}`).Want(400).Refused("unknown_field")
	if a := h.do("GET", "/users", nil).Want(200); a.At("data.0") != nil {
		t.Errorf("a refused user is there: %s", a.Bytes)
	}
}

func TestUpdate_ChangesGivenFieldsOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		a := h.do("POST", "/users", `{"email":"a@example.com","first_name":"Ada","timezone":"Europe/Berlin","skills":{"german":3}}`).Want(201)
		id := a.Text("id")
		a = h.do("PATCH", "/users/"+id, `{"last_name":"L","forward":{"busy":"102"},"voicemail":{"enabled":true},"skills":{"english":2}}`).Want(200)
		if a.Text("name") != "Ada L" || a.Text("forward.busy") != "102" || a.At("forward.always") != nil || a.At("skills.english") != float64(2) {
			t.Errorf("got %s", a.Bytes)
		}
		a = h.do("PATCH", "/users/"+id, `{"timezone":null,"forward":{"always":"+49301234567","busy":null}}`).Want(200)
		if a.At("timezone") != nil || a.Text("forward.always") != "+49301234567" || a.At("forward.busy") != nil || a.At("voicemail.enabled") != true {
			t.Errorf("got %s", a.Bytes)
		}
		if got := h.do("GET", "/users/"+id, nil).Want(200); string(got.Bytes) != string(a.Bytes) {
			t.Errorf("read %s, changed to %s", got.Bytes, a.Bytes)
		}
		tag := a.Header.Get("Etag")
		h.now = h.now.Add(time.Second)
		h.do("PATCH", "/users/"+id, `{"last_name":"M"}`, "If-Match: "+tag).Want(200)
		h.do("PATCH", "/users/"+id, `{"last_name":"N"}`, "If-Match: "+tag).Want(412).Refused("version_conflict")
	})
}

func TestDND_EndsAtUntil(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.do("POST", "/users", `{"email":"a@example.com","first_name":"Ada"}`).Want(201).Text("id")
		h.do("PUT", "/users/"+id+"/dnd", `{"enabled":true,"until":"2026-11-21T11:00:00Z"}`).Refused("validation_failed", "until in_the_past")
		a := h.do("PUT", "/users/"+id+"/dnd", `{"enabled":true,"until":"2026-11-21T13:00:00Z"}`).Want(200)
		if a.Text("presence.status") != "dnd" || a.Text("dnd.until") != "2026-11-21T13:00:00.000Z" {
			t.Errorf("got %s", a.Bytes)
		}
		h.now = h.now.Add(time.Hour)
		if a := h.do("GET", "/users/"+id, nil).Want(200); a.Text("presence.status") != "offline" {
			t.Errorf("an hour later: %s", a.Bytes)
		}
		if a := h.do("PUT", "/users/"+id+"/dnd", `{"enabled":false}`).Want(200); a.At("dnd.enabled") != false {
			t.Errorf("got %s", a.Bytes)
		}
	})
}

func TestRemove_KeepsRowForHistory(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		var removals removalRecorder
		h.Observe(&removals)
		id := h.do("POST", "/users", `{"email":"a@example.com","first_name":"Ada","extension":"200"}`).Want(201).Text("id")
		heir := h.do("POST", "/users", `{"email":"b@example.com","first_name":"Bob"}`).Want(201).Text("id")
		h.do("DELETE", "/users/"+id+"?reassign_to=usr_none", nil).Refused("validation_failed", "reassign_to not_found")
		h.do("DELETE", "/users/"+id+"?reassign_to="+heir, nil).Want(204)
		if removed := removals.all; len(removed) != 1 || removed[0] != (user.Removal{OrgID: h.org, UserID: id, ReassignTo: heir}) {
			t.Errorf("told of %v", removed)
		}
		a := h.do("GET", "/users/"+id, nil).Want(200)
		if a.Text("status") != "removed" || a.At("extension") != nil {
			t.Errorf("got %s", a.Bytes)
		}
		if _, err := h.ByExtension(context.Background(), d.Read(context.Background()), h.org, "200"); !db.IsNone(err) {
			t.Errorf("its extension still rings: %v", err)
		}
		h.do("DELETE", "/users/"+id, nil).Want(404)
		h.do("PATCH", "/users/"+id, `{"last_name":"X"}`).Want(404)
		if a := h.do("GET", "/users", nil).Want(200); a.Text("data.0.id") != heir || a.At("data.1") != nil {
			t.Errorf("list: %s", a.Bytes)
		}
		if a := h.do("GET", "/users?status=removed", nil).Want(200); a.Text("data.0.id") != id {
			t.Errorf("list of removed: %s", a.Bytes)
		}
	})
}

func TestRemove_FailureKeepsUser(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.Observe(&removalRecorder{err: fmt.Errorf("no")})
	id := h.do("POST", "/users", `{"email":"a@example.com","first_name":"Ada"}`).Want(201).Text("id")
	h.do("DELETE", "/users/"+id, nil).Want(500)
	if a := h.do("GET", "/users/"+id, nil).Want(200); a.Text("status") != "active" {
		t.Errorf("got %s", a.Bytes)
	}
}

func TestListUsers_FilterAndPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		for i, role := range []string{"agent", "admin", "agent", "viewer"} {
			h.do("POST", "/users", fmt.Sprintf(`{"email":"u%d@example.com","first_name":"User","last_name":"No_%d","role":%q}`, i, i, role)).Want(201)
		}
		for path, want := range map[string]string{
			"/users?role=agent": "u0 u2", "/users?role=agent,viewer": "u0 u2 u3", "/users?q=no_3": "u3", "/users?q=NO%25": "",
			"/users?q=101": "u1", "/users?q=U2@EX": "u2", "/users?status=suspended": "",
		} {
			if got := names(h.do("GET", path, nil).Want(200)); got != want {
				t.Errorf("%s finds %q, want %q", path, got, want)
			}
		}
		first := h.do("GET", "/users?limit=3&include_total=true", nil).Want(200)
		if first.At("total") != float64(4) || h.do("GET", "/users?limit=1", nil).Has("", "total") {
			t.Errorf("total of %s", first.Bytes)
		}
		if a := h.do("GET", "/users?role=agent&include_total=true&limit=1", nil).Want(200); a.At("total") != float64(2) {
			t.Errorf("total of agents: %s", a.Bytes)
		}
		h.do("POST", "/users", `{"email":"u4@example.com","first_name":"User"}`).Want(201)
		second := h.do("GET", "/users?limit=3&cursor="+first.Text("next_cursor"), nil).Want(200)
		if got := names(first) + "|" + names(second); got != "u0 u1 u2|u3 u4" {
			t.Errorf("pages %s", got)
		}
		h.do("GET", "/users?rolle=agent", nil).Want(400).Refused("invalid_query")
		h.do("GET", "/users?limit=0", nil).Want(400).Refused("invalid_query")
	})
}

// names returns the local parts of the addresses in a list, in order.
func names(a *optest.Answer) string {
	out := ""
	for i := 0; a.At("data."+strconv.Itoa(i)) != nil; i++ {
		if i > 0 {
			out += " "
		}
		out += a.Text("data." + strconv.Itoa(i) + ".email")[:2]
	}
	return out
}

func TestOnChange_CalledForEveryChange(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	heard := h.bus.Subscribe(user.Changed, 1)
	defer heard.Close()
	id := h.do("POST", "/users", `{"email":"a@example.com","first_name":"Ada"}`).Want(201).Text("id")
	for _, change := range []func(){
		func() {},
		func() { h.do("PATCH", "/users/"+id, `{"last_name":"X"}`).Want(200) },
		func() { h.do("PUT", "/users/"+id+"/dnd", `{"enabled":true}`).Want(200) },
		func() { h.do("DELETE", "/users/"+id, nil).Want(204) },
	} {
		change()
		select {
		case got := <-heard.C:
			if got != id {
				t.Errorf("heard of %v", got)
			}
		default:
			t.Error("a change was not heard")
		}
	}
}

func TestUsers_OtherOrganisationNotFound(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id := h.do("POST", "/users", `{"email":"a@example.com","first_name":"Ada"}`).Want(201).Text("id")
	other, _ := h.orgs.Create(context.Background(), "Other", "DE")
	p := optest.Admin(other.ID)
	h.server.Do(p, "GET", "/users/"+id, nil).Want(404)
	h.server.Do(p, "PATCH", "/users/"+id, `{"last_name":"X"}`).Want(404)
	h.server.Do(p, "DELETE", "/users/"+id, nil).Want(404)
	h.server.Do(p, "PUT", "/users/"+id+"/dnd", `{"enabled":true}`).Want(404)
	weak := optest.Admin(h.org)
	weak.Scopes = nil
	h.server.Do(weak, "GET", "/users/"+id, nil).Want(403).Refused("insufficient_scope")
}

func TestGetUser_HasEveryField(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	a := h.do("POST", "/users", `{"email":"a@example.com","first_name":"Ada"}`).Want(201)
	for _, name := range []string{"id", "email", "first_name", "last_name", "name", "role", "status", "extension",
		"direct_number_ids", "outbound_number_id", "presence", "dnd", "timezone", "language", "skills", "queue_ids", "devices",
		"sip", "ring_strategy", "forward", "voicemail", "recording_mode", "mfa_enabled", "created_at", "last_seen_at"} {
		if !a.Has("", name) {
			t.Errorf("%s is missing: %s", name, a.Bytes)
		}
	}
}
