package partner_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/org"
	"soniq/internal/identity/partner"
	"soniq/internal/identity/user"
	"soniq/internal/identity/user/usertest"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
)

var ctx = context.Background()

// fixture holds the services for a test of partners.
type fixture struct {
	*partner.Service
	t      *testing.T
	d      *db.DB
	orgs   *org.Service
	users  *user.Service
	keys   *auth.Service
	bus    *bus.Bus
	org    string
	files  string
	jobs   *job.Queue
	server *optest.Server

	mu  sync.Mutex // guards now
	now time.Time
}

// noMessages is an installation without text messages.
type noMessages struct{}

func (noMessages) Count(context.Context, string, db.Time, db.Time) (sent, received int, err error) {
	return 0, 0, nil
}

// folders has a folder for each organisation.
type folders struct{ h *fixture }

func (f folders) RemoveFiles(org string) error { return os.RemoveAll(filepath.Join(f.h.files, org)) }

// erasures receives the organisations that were erased.
type erasures chan string

func (e erasures) OrgErased(org string) { e <- org }

// suspension ends the sessions of suspended users.
type suspension struct{ h *fixture }

func (o suspension) UserStatusChanged(ctx context.Context, tx db.Querier, u user.User) error {
	return o.h.keys.RevalidateUser(ctx, tx, u.OrgID, u.ID)
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	s, err := seal.New()
	must(t, err)
	h := &fixture{t: t, d: d, bus: bus.New(), files: t.TempDir(), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	h.orgs = org.New(d, h.bus, h.clock)
	o, err := h.orgs.Create(ctx, "Harbor Internet", "GB")
	must(t, err)
	h.org = o.ID
	h.jobs = &job.Queue{Bus: h.bus, Clock: clock.Func(h.clock)}
	c := usertest.Config(d, h.orgs, &event.Outbox{DB: d, Bus: h.bus, Clock: clock.Func(h.clock)}, h.bus, h.clock)
	c.Invites = &user.Invites{Seal: s, BaseURL: "https://voice.example", Jobs: h.jobs}
	h.users = user.New(c)
	h.keys = auth.New(d, h.orgs, s, h.bus, h.clock, "soniq")
	h.users.Observe(suspension{h})
	h.Service = partner.New(partner.Config{DB: d, Orgs: h.orgs, Users: h.users, Keys: h.keys, Jobs: h.jobs, Clock: clock.Func(h.clock),
		Grace: 30 * 24 * time.Hour, Messages: noMessages{}, Files: folders{h}})
	all := append(append(h.Operations(), h.users.Operations()...), append(h.keys.Operations(), h.orgs.Operations()...)...)
	h.server = optest.New(t, d, all...)
	return h
}

func (h *fixture) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *fixture) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// partner returns the principal of a partner's key with all scopes.
func (h *fixture) partner() access.Principal {
	p := optest.Admin(h.org)
	p.Kind = access.PartnerKey
	return p
}

func (h *fixture) do(method, path string, body any, header ...string) *optest.Answer {
	h.t.Helper()
	return h.server.Do(h.partner(), method, path, body, header...)
}

// in sends a request as an administrator of a child organisation.
func (h *fixture) in(child, method, path string, body any) *optest.Answer {
	h.t.Helper()
	return h.server.Do(optest.Admin(child), method, path, body)
}

func (h *fixture) createChild(more string) string {
	h.t.Helper()
	return h.do("POST", "/partners", `{"name":"Dental","plan":"starter","admin_email":"ada@dental.example"`+more+`}`).Want(201).Text("id")
}

// count returns an integer from the database.
func (h *fixture) count(query string, args ...any) (n int) {
	h.t.Helper()
	must(h.t, h.d.Read(ctx).QueryRow(ctx, query, args...).Scan(&n))
	return n
}

func TestCreateChild_WithAdministrator(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		a := h.do("POST", "/partners", `{"name":" Dental ","plan":"business","admin_email":"ada@dental.example","call_recording_enabled":true,
			"country":"de","limits":{"users":7},"external_reference":"cust-1"}`).Want(201)
		id := a.Text("id")
		for path, want := range map[string]any{"name": "Dental", "plan": "business", "admin_email": "ada@dental.example", "call_recording_enabled": true,
			"status": "active", "country": "DE", "timezone": "Europe/Berlin", "limits.users": 7.0, "limits.numbers": 50.0, "usage.users": 1.0,
			"external_reference": "cust-1", "suspended_at": nil, "closed_at": nil, "invitation.sent": false} {
			if got := a.At(path); got != want {
				t.Errorf("%s is %v, want %v", path, got, want)
			}
		}
		if a.Header.Get("Location") != "/api/v1/partners/"+id || a.Text("invitation.url") == "" {
			t.Errorf("Location %q, invitation %v", a.Header.Get("Location"), a.At("invitation"))
		}
		u := h.in(id, "GET", "/users/"+a.Text("admin_user_id"), nil).Want(200)
		if u.Text("role") != "owner" || u.Text("status") != "invited" || u.Text("email") != "ada@dental.example" {
			t.Errorf("the administrator is %s", u.Bytes)
		}
		if n := h.count(`SELECT COUNT(*) FROM events WHERE org_id = $1 AND kind = 'user.created'`, id); n != 1 {
			t.Errorf("%d events user.created in the child", n)
		}
		o := h.in(id, "GET", "/organization", nil).Want(200)
		if o.Text("parent_id") != h.org || o.Text("recording.mode") != "on" || o.At("limits.users") != 7.0 {
			t.Errorf("the organisation is %s", o.Bytes)
		}
		if again := h.do("GET", "/partners/"+id, nil).Want(200); again.Has("", "invitation") {
			t.Error("the invitation is shown twice")
		}
	})
}

func TestCreateChild_ListsEveryViolation(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.do("POST", "/partners", `{"name":"","plan":"gold","admin_email":"nobody","country":"XX","timezone":"Mars/Phobos","limits":{"users":-1}}`).Want(422).
			Refused("validation_failed", "name invalid_length", "plan unknown_plan", "admin_email invalid_email", "country invalid_country",
				"timezone invalid_timezone", "limits.users out_of_range")
		h.do("POST", "/partners", `{"name":"x","plan":"starter"}`).Want(422).Refused("validation_failed", "admin_email required")
		h.do("POST", "/partners", `{"name":"x","plan":"starter","admin_email":"a@b.example","limits":{"users":0}}`).Want(403).Refused("plan_limit")
		if n := h.count(`SELECT COUNT(*) FROM orgs WHERE parent_id IS NOT NULL`); n != 0 {
			t.Errorf("%d organisations were made", n)
		}
	})
}

func TestChildren_OtherPartnerNotFound(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		child := h.createChild("")
		other, err := h.orgs.Create(ctx, "Other", "GB")
		must(t, err)
		foreign := optest.Admin(other.ID)
		for _, o := range h.Operations() {
			if o.Path == "/partners" {
				continue
			}
			body := map[string]any{}
			switch o.ID {
			case "partners.suspend":
				body = map[string]any{"reason": "x"}
			case "partners.users.create":
				body = map[string]any{"email": "x@y.example", "first_name": "x"}
			case "partners.keys.create":
				body = map[string]any{"name": "x", "scopes": []string{"calls:read"}}
			}
			for _, id := range []string{child, h.org, other.ID, "org_nowhere"} {
				path := strings.NewReplacer("{id}", id, "{user_id}", "usr_x").Replace(o.Path)
				var send any
				if o.Method != "GET" && o.Method != "DELETE" {
					send = body
				}
				if o.ID == "partners.close" {
					path += "?confirm=Dental"
				}
				h.server.Do(foreign, o.Method, path, send).Want(404).Refused("not_found")
			}
		}
		if n := len(h.server.Do(foreign, "GET", "/partners", nil).Want(200).At("data").([]any)); n != 0 {
			t.Errorf("a stranger lists %d", n)
		}
	})
}

func TestUpdateChild_MergePatch(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.createChild(`,"limits":{"users":3,"numbers":4},"external_reference":"x"`)
		h.advance(time.Second)
		a := h.do("PATCH", "/partners/"+id, `{"plan":"business","limits":{"users":null,"storage_gb":1},"external_reference":null,"call_recording_enabled":true}`).Want(200)
		for path, want := range map[string]any{"plan": "business", "limits.users": 100.0, "limits.numbers": 4.0, "limits.storage_gb": 1.0,
			"external_reference": nil, "call_recording_enabled": true, "name": "Dental"} {
			if got := a.At(path); got != want {
				t.Errorf("%s is %v, want %v", path, got, want)
			}
		}
		h.do("PATCH", "/partners/"+id, `{"plan":"none","name":""}`).Want(422).Refused("validation_failed", "plan unknown_plan", "name invalid_length")
		h.do("PATCH", "/partners/"+id, `{"name":"New"}`, `If-Match: "old"`).Want(412).Refused("version_conflict")
		if a := h.do("PATCH", "/partners/"+id, `{"limits":null}`).Want(200); a.At("limits.numbers") != 50.0 {
			t.Errorf("limits are %v", a.At("limits"))
		}
	})
}

func TestQuota_UsersAddedConcurrently(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.createChild(`,"limits":{"users":4}`) // one is the administrator
		var all sync.WaitGroup
		answers := make([]int, 8)
		for i := range answers {
			all.Go(func() {
				a := h.do("POST", "/partners/"+id+"/users", fmt.Sprintf(`{"email":"u%d@dental.example","first_name":"U"}`, i))
				if answers[i] = a.Status; a.Status == 403 && (a.Text("code") != "plan_limit" || a.At("allowed") != 4.0) {
					t.Errorf("refused with %s", a.Bytes)
				}
			})
		}
		all.Wait()
		added := 0
		for _, s := range answers {
			if s == 201 {
				added++
			} else if s != 403 {
				t.Errorf("answered %d", s)
			}
		}
		if added != 3 {
			t.Errorf("%d of 3 places were given: %v", added, answers)
		}
		h.in(id, "POST", "/users", `{"email":"own@dental.example","first_name":"U"}`).Want(403).Refused("plan_limit")
		victim := h.do("GET", "/partners/"+id+"/users", nil).Want(200).Text("data.1.id")
		h.do("DELETE", "/partners/"+id+"/users/"+victim, nil).Want(204)
		h.in(id, "POST", "/users", `{"email":"own@dental.example","first_name":"U"}`).Want(201)
	})
}

func TestPeople_ManagedWithFewFields(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.createChild("")
		bob := h.do("POST", "/partners/"+id+"/users", `{"email":"bob@dental.example","first_name":"Bob","send_invite":false}`).Want(201).Text("id")
		key, err := h.keys.CreateKey(ctx, auth.Request{OrgID: id, Name: "of bob", UserID: bob, Scopes: []access.Scope{access.UsersAdmin}})
		must(t, err)
		verify := func() error {
			_, err := h.keys.Verify(ctx, *key.Secret, access.Live, netip.MustParseAddr("127.0.0.1"))
			return err
		}
		must(t, verify())
		h.advance(time.Second)
		a := h.do("PATCH", "/partners/"+id+"/users/"+bob, `{"role":"supervisor","status":"suspended"}`).Want(200)
		if a.Text("role") != "supervisor" || a.Text("status") != "suspended" || a.Has("", "sip") || len(a.Body) != 6 {
			t.Errorf("bob is %s", a.Bytes)
		}
		if err := verify(); err == nil {
			t.Error("the key of a suspended user works")
		}
		h.do("PATCH", "/partners/"+id+"/users/"+bob, `{"status":"active"}`).Want(200)
		must(t, verify())
		h.do("PATCH", "/partners/"+id+"/users/"+bob, `{"status":"removed"}`).Want(422).Refused("validation_failed", "status invalid_value")
		h.do("PATCH", "/partners/"+id+"/users/"+bob, `{"status":"invited"}`).Want(422).Refused("validation_failed", "status invalid_value")
		list := h.do("GET", "/partners/"+id+"/users?limit=1", nil).Want(200)
		if list.Text("data.0.role") != "owner" || list.At("has_more") != true {
			t.Errorf("users are %s", list.Bytes)
		}
		second := h.do("GET", "/partners/"+id+"/users?limit=1&include_total=true&cursor="+list.Text("next_cursor"), nil).Want(200)
		if second.Text("data.0.id") != bob || second.At("total") != 2.0 {
			t.Errorf("the second page is %s", second.Bytes)
		}
		h.do("DELETE", "/partners/"+id+"/users/"+bob, nil).Want(204)
		h.do("DELETE", "/partners/"+id+"/users/"+bob, nil).Want(404).Refused("not_found")
	})
}

func TestAddKey_AtMostScopesOfPartnerAndPlan(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	plans := org.DefaultPlans()
	starter := plans.Plans["starter"]
	starter.Scopes = []access.Scope{access.CallsRead, access.UsersAdmin}
	plans.Plans["starter"] = starter
	must(t, h.orgs.SetPlans(ctx, plans))
	id := h.createChild("")
	a := h.do("POST", "/partners/"+id+"/keys", `{"name":"set-up","scopes":["calls:read","users:admin"]}`).Want(201)
	if a.Text("kind") != "standard" || a.Text("key") == "" {
		t.Errorf("the key is %s", a.Bytes)
	}
	p, err := h.keys.Verify(ctx, a.Text("key"), access.Live, netip.MustParseAddr("127.0.0.1"))
	if err != nil || p.OrgID != id {
		t.Errorf("the key is %s's: %v", p.OrgID, err)
	}
	h.do("POST", "/partners/"+id+"/keys", `{"name":"x","scopes":["calls:read","sms:write"]}`).Want(422).Refused("validation_failed", "scopes not_held")
	h.do("POST", "/partners/"+id+"/keys", `{"name":"x","scopes":["partners:read"]}`).Want(422).Refused("validation_failed", "scopes partner_scope")
	h.do("PATCH", "/partners/"+id, `{"plan":"business"}`).Want(200)
	h.do("POST", "/partners/"+id+"/keys", `{"name":"x","scopes":["sms:write"]}`).Want(201)
	h.do("PATCH", "/partners/"+id, `{"plan":"starter"}`).Want(200)
	if p, _ := h.keys.ActOnBehalf(ctx, h.partner(), id); len(p.Scopes) != 2 || p.OrgID != id || p.HomeID != h.org {
		t.Errorf("acting for the child: %+v", p)
	}
}
