package device_test

import (
	"context"
	"net/netip"
	"reflect"
	"strings"
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
	"soniq/internal/platform/seal"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/device/devicetest"
)

const domain = "sip.example.com"

// fixture holds the services and records that tests of phones need.
type fixture struct {
	*device.Service
	db     *db.DB
	orgs   *org.Service
	users  *user.Service
	org    string
	server *optest.Server
	now    time.Time
}

func newFixture(t testing.TB, d *db.DB) *fixture {
	t.Helper()
	h := &fixture{db: d, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return h.now }
	b := bus.New()
	h.orgs = org.New(d, b, now)
	o, err := h.orgs.Create(context.Background(), "Acme", "DE")
	if err != nil {
		t.Fatal(err)
	}
	h.org = o.ID
	s, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	outbox := &event.Outbox{DB: d, Bus: b, Clock: clock.Func(func() time.Time { return h.now })}
	c := usertest.Config(d, h.orgs, outbox, b, now)
	phones := &struct{ *device.Service }{} // constructed later
	c.Phones = phones
	h.users = user.New(c)
	x := devicetest.Config(d, h.users, s, outbox, b, now, domain)
	h.Service = device.New(x)
	phones.Service = h.Service
	h.users.Observe(userRemoval{h})
	h.server = optest.New(t, d, append(h.Operations(), h.users.Operations()...)...)
	return h
}

func (h *fixture) do(method, path string, body any, header ...string) *optest.Answer {
	return h.server.Do(optest.Admin(h.org), method, path, body, header...)
}

// addUser adds a user and returns the user's id, and the SIP user name and password of the user's phone.
func (h *fixture) addUser(t testing.TB) (id, username, password string) {
	t.Helper()
	a := h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada"}`).Want(201)
	return a.Text("id"), a.Text("sip.username"), a.Text("sip.password")
}

func (h *fixture) account(t testing.TB, username string) (device.Account, bool) {
	t.Helper()
	a, ok, err := h.Account(context.Background(), username)
	if err != nil {
		t.Fatal(err)
	}
	return a, ok
}

func (h *fixture) binding(n string) device.Binding {
	return device.Binding{Contact: "sip:" + n + "@192.0.2.7:5062;transport=tcp", Source: netip.MustParseAddrPort("192.0.2.7:40000"),
		Transport: "tcp", Flow: 1<<63 + 5, Path: []string{"<sip:edge.example.com;lr>"}, Instance: `"<urn:uuid:1>";1`, CallID: "c1",
		CSeq: 1<<32 - 1, Priority: 700, UserAgent: "phone/1", Expires: h.now.Add(time.Minute), Registered: h.now}
}

func TestAccount_OfNewUser(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id, username, password := h.addUser(t)
		if len(password) < 24 || username != strings.ToLower(username) {
			t.Errorf("credentials %q %q", username, password)
		}
		a, ok := h.account(t, username)
		if !ok || a.OrgID != h.org || a.UserID != id || a.Username != username {
			t.Fatalf("account %+v, %v", a, ok)
		}
		m, s := device.HA1(username, domain, password)
		if a.HA1MD5 != m || a.HA1SHA256 != s {
			t.Errorf("digests do not fit the password")
		}
		if _, ok := h.account(t, strings.ToUpper(username)); !ok {
			t.Error("the case of a user name must not matter")
		}
		if _, ok := h.account(t, "nobody"); ok {
			t.Error("nobody is somebody")
		}
		again := h.do("GET", "/users/"+id, nil).Want(200)
		if again.At("sip.password") != nil || again.Text("sip.username") != username || again.At("devices.0.registered") != false {
			t.Errorf("read again: %s", again.Bytes)
		}
		a2 := h.do("POST", "/users", `{"email":"b@example.com","first_name":"B","provision_sip":false}`).Want(201)
		if a2.At("sip") != nil {
			t.Errorf("without a phone: %s", a2.Bytes)
		}
	})
}

func TestSealedDigest_BoundToRow(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	ctx := context.Background()
	_, ada, _ := h.addUser(t)
	b := h.do("POST", "/users", `{"email":"b@example.com","first_name":"B"}`).Want(201)
	err := h.db.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, `UPDATE devices SET ha1_md5 = (SELECT ha1_md5 FROM devices WHERE username = $1) WHERE username = $2`,
			ada, b.Text("sip.username"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Account(ctx, b.Text("sip.username")); err == nil {
		t.Error("a digest copied from another phone is accepted")
	}
}

func TestHA1_RFC7616Example(t *testing.T) {
	t.Parallel()
	m, s := device.HA1("Mufasa", "http-auth@example.org", "Circle of Life") // RFC 7616 §3.9.1
	if m != "3d78807defe7de2157e2b0b6573a855f" || s != "7987c64c30e25f1b74be53f966b49b90f2808aa92faf9a00262392d7b4794232" {
		t.Errorf("got %s and %s", m, s)
	}
}

func TestRotateCredentials_OldPasswordInvalid(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id, username, old := h.addUser(t)
		a, _ := h.account(t, username)
		if err := h.Save(context.Background(), a.DeviceID, []device.Binding{h.binding("ada")}); err != nil {
			t.Fatal(err)
		}
		r := h.do("POST", "/users/"+id+"/sip-credentials/rotate", `{}`).Want(200)
		if r.Text("username") != username || r.Text("domain") != domain || r.Text("password") == old || r.Text("rotated_at") == "" {
			t.Errorf("got %s", r.Bytes)
		}
		a, _ = h.account(t, username)
		if m, _ := device.HA1(username, domain, r.Text("password")); a.HA1MD5 != m {
			t.Error("the new password does not log in at once")
		}
		if left, _ := h.BindingsOfUser(context.Background(), h.org, id); len(left) != 0 {
			t.Errorf("still registered: %v", left)
		}
		h.do("POST", "/users/"+id+"/sip-credentials/rotate", `{"device_id":"dev_none"}`).Refused("validation_failed", "device_id not_found")
		h.do("POST", "/users/usr_none/sip-credentials/rotate", `{}`).Want(404)
	})
}

func TestBindings_RoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ctx := context.Background()
		id, username, _ := h.addUser(t)
		a, _ := h.account(t, username)
		want := h.binding("ada")
		second := h.binding("second")
		second.Priority, second.Path = 1000, nil
		if err := h.Save(ctx, a.DeviceID, []device.Binding{want, second}); err != nil {
			t.Fatal(err)
		}
		want.DeviceID, second.DeviceID = a.DeviceID, a.DeviceID
		for name, read := range map[string]func() ([]device.Binding, error){
			"by devices": func() ([]device.Binding, error) { return h.Bindings(ctx, h.org, []string{a.DeviceID}) },
			"by user":    func() ([]device.Binding, error) { return h.BindingsOfUser(ctx, h.org, id) },
			"load":       func() ([]device.Binding, error) { return h.Load(ctx, a.DeviceID) },
			"all":        func() ([]device.Binding, error) { return h.AllBindings(ctx) },
		} {
			got, err := read()
			for i := range got {
				if (name == "by user") != (got[i].Username == username) {
					t.Errorf("%s: user name %q", name, got[i].Username)
				}
				got[i].SRTP, got[i].Username = "", ""
			}
			if err != nil || len(got) != 2 || !reflect.DeepEqual(got[0], second) || !reflect.DeepEqual(got[1], want) {
				t.Errorf("%s: got %+v, %v; want %+v and %+v", name, got, err, second, want)
			}
		}
		if got, err := h.Bindings(ctx, "org_other", []string{a.DeviceID}); len(got) != 0 || err != nil {
			t.Errorf("another organisation sees %v, %v", got, err)
		}
		if got, err := h.BindingsOfUser(ctx, "org_other", id); len(got) != 0 || err != nil {
			t.Errorf("another organisation sees %v, %v", got, err)
		}
		u := h.do("GET", "/users/"+id, nil).Want(200)
		if u.Text("presence.status") != "available" || u.At("devices.0.registered") != true {
			t.Errorf("user: %s", u.Bytes)
		}
		h.now = h.now.Add(time.Minute)
		if got, _ := h.Bindings(ctx, h.org, []string{a.DeviceID}); len(got) != 0 {
			t.Errorf("after its time: %+v", got)
		}
		if got, _ := h.BindingsOfUser(ctx, h.org, id); len(got) != 0 {
			t.Errorf("of the user, after its time: %+v", got)
		}
		if got, _ := h.AllBindings(ctx); len(got) != 0 {
			t.Errorf("of all, after its time: %+v", got)
		}
		if got := h.do("GET", "/devices/"+a.DeviceID, nil).Want(200).Text("registration.status"); got != "expired" {
			t.Errorf("status %s", got)
		}
		if err := h.Save(ctx, a.DeviceID, nil); err != nil {
			t.Fatal(err)
		}
		if got, _ := h.Load(ctx, a.DeviceID); len(got) != 0 {
			t.Errorf("after the end: %+v", got)
		}
		if err := h.Save(ctx, "dev_none", []device.Binding{want}); !db.IsNone(err) {
			t.Errorf("unknown device: %v", err)
		}
	})
}

func TestDropFlows_KeepsUDP(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	ctx := context.Background()
	_, username, _ := h.addUser(t)
	a, _ := h.account(t, username)
	udp, tcp, proxied := h.binding("udp"), h.binding("tcp"), h.binding("proxied")
	udp.Transport, udp.Flow, tcp.Path = "udp", 0, nil
	if err := h.Save(ctx, a.DeviceID, []device.Binding{tcp, udp, proxied}); err != nil {
		t.Fatal(err)
	}
	if err := h.DropFlows(ctx, "node_a"); err != nil {
		t.Fatal(err)
	}
	if got, _ := h.Load(ctx, a.DeviceID); len(got) != 2 || got[0].Transport != "udp" || got[1].Path == nil {
		t.Errorf("left: %+v", got)
	}
	h.now = h.now.AddDate(0, 0, 2)
	if _, err := h.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if got, _ := h.Load(ctx, a.DeviceID); len(got) != 0 {
		t.Errorf("not swept: %+v", got)
	}
}

func TestAccount_DisabledOrRemoved(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ctx := context.Background()
		id, username, _ := h.addUser(t)
		a, _ := h.account(t, username)
		if err := h.Save(ctx, a.DeviceID, []device.Binding{h.binding("ada")}); err != nil {
			t.Fatal(err)
		}
		r := h.do("PATCH", "/devices/"+a.DeviceID, `{"status":"disabled"}`).Want(200)
		if r.Text("registration.status") != "unregistered" {
			t.Errorf("got %s", r.Bytes)
		}
		if _, ok := h.account(t, username); ok {
			t.Error("a disabled phone logs in")
		}
		h.do("PATCH", "/devices/"+a.DeviceID, `{"status":"active"}`).Want(200)
		if _, ok := h.account(t, username); !ok {
			t.Error("an enabled phone does not log in")
		}
		if err := h.Save(ctx, a.DeviceID, []device.Binding{h.binding("ada")}); err != nil {
			t.Fatal(err)
		}
		h.do("DELETE", "/users/"+id, nil).Want(204)
		if _, ok := h.account(t, username); ok {
			t.Error("the phone of a removed user logs in")
		}
		h.do("GET", "/devices/"+a.DeviceID, nil).Want(404)
	})
}

func TestDevice_CreateUpdateList(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id, _, _ := h.addUser(t)
		a := h.do("POST", "/devices", map[string]any{"user_id": id, "name": "Desk", "kind": "desk_phone", "mac": "0015.65AB.CDEF",
			"vendor": "Yealink", "line_keys": []map[string]any{{"position": 1, "type": "blf", "value": "101", "label": "Bob"}}}).Want(201)
		if a.Text("mac") != "00:15:65:ab:cd:ef" || len(a.Text("sip.password")) < 24 || a.Text("sip.domain") != domain ||
			a.Text("emergency_calling") != "not_available" || a.Text("line_keys.0.label") != "Bob" {
			t.Errorf("got %s", a.Bytes)
		}
		dev := a.Text("id")
		for path, want := range map[string]bool{"/devices?kind=desk_phone": true, "/devices?vendor=yealink": true, "/devices?q=15:65": true,
			"/devices?registered=false&q=desk": true, "/devices?registered=true": false, "/devices?user_id=usr_none": false,
			"/devices?kind=webrtc": false} {
			if got := h.do("GET", path, nil).Want(200).Text("data.0.id") == dev; got != want {
				t.Errorf("%s finds it: %v, want %v", path, got, want)
			}
		}
		if err := h.Save(context.Background(), dev, []device.Binding{h.binding("desk")}); err != nil {
			t.Fatal(err)
		}
		r := h.do("GET", "/devices?registered=true&include_total=true", nil).Want(200)
		if r.At("total") != float64(1) {
			t.Errorf("total of %s", r.Bytes)
		}
		if r.Text("data.0.id") != dev || r.Text("data.0.registration.user_agent") != "phone/1" || r.Text("data.0.last_seen_at") == "" {
			t.Errorf("registered: %s", r.Bytes)
		}
		a = h.do("PATCH", "/devices/"+dev, `{"name":"Front","mac":null,"codecs":["pcma"],"sip":{"digest":"sha256"}}`).Want(200)
		if a.Text("name") != "Front" || a.At("mac") != nil || a.Text("codecs.0") != "pcma" || a.At("sip.password") != nil {
			t.Errorf("got %s", a.Bytes)
		}
		if acc, _ := h.account(t, a.Text("sip.username")); !acc.WantSHA256 {
			t.Error("the cache did not hear of the change")
		}
		h.do("DELETE", "/devices/"+dev, nil).Want(204)
		h.do("GET", "/devices/"+dev, nil).Want(404)
	})
}

func TestDevice_AllViolationsReported(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	other, _ := h.orgs.Create(context.Background(), "Other", "DE")
	id, username, _ := h.addUser(t)
	h.do("POST", "/devices", `{"user_id":"usr_none","name":"","kind":"banana","mac":"zz","srtp":"maybe","codecs":["mp3"]}`).Want(422).
		Refused("validation_failed", "user_id not_found", "name invalid_length", "kind invalid_value", "mac invalid_mac",
			"srtp invalid_value", "codecs invalid_value")
	p := optest.Admin(other.ID)
	h.server.Do(p, "POST", "/devices", map[string]any{"user_id": id, "name": "Mine", "kind": "softphone"}).
		Refused("validation_failed", "user_id not_found")
	a, _ := h.account(t, username)
	h.server.Do(p, "GET", "/devices/"+a.DeviceID, nil).Want(404)
	h.server.Do(p, "PATCH", "/devices/"+a.DeviceID, `{"name":"X"}`).Want(404)
	h.server.Do(p, "DELETE", "/devices/"+a.DeviceID, nil).Want(404)
	h.server.Do(p, "POST", "/users/"+id+"/sip-credentials/rotate", `{}`).Want(404)
}

func TestDevice_JSONHasEveryField(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	_, username, _ := h.addUser(t)
	acc, _ := h.account(t, username)
	a := h.do("GET", "/devices/"+acc.DeviceID, nil).Want(200)
	for _, name := range []string{"id", "user_id", "name", "kind", "mac", "vendor", "model", "firmware", "template_id", "sip", "srtp",
		"codecs", "line_keys", "provisioning", "registration", "status", "emergency_calling", "last_seen_at", "created_at"} {
		if !a.Has("", name) {
			t.Errorf("%s is missing: %s", name, a.Bytes)
		}
	}
}

func BenchmarkAccount(b *testing.B) {
	h := newFixture(b, dbtest.SQLite(b))
	_, username, _ := h.addUser(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := h.account(b, username); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkBindingsOfUser(b *testing.B) {
	h := newFixture(b, dbtest.SQLite(b))
	id, username, _ := h.addUser(b)
	a, _ := h.account(b, username)
	if err := h.Save(context.Background(), a.DeviceID, []device.Binding{h.binding("ada")}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if got, err := h.BindingsOfUser(context.Background(), h.org, id); err != nil || len(got) != 1 {
			b.Fatal(got, err)
		}
	}
}
