package provisioning

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user/usertest"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/device/devicetest"
)

// fixture holds the services and records that tests of addresses need.
type fixture struct {
	t       *testing.T
	devices *device.Service
	org     string
	user    string
	api     *optest.Server
	server  *Server
	router  *http.ServeMux
	now     time.Time
	source  string
	private bool

	emergency bool // the organisation has a route for emergency calls
}

// RegistrarAddress implements Registrar.
func (h *fixture) RegistrarAddress(string) (string, int) { return "voice.example.com", 5060 }

// HasEmergencyRoute implements device.Emergency.
func (h *fixture) HasEmergencyRoute(_ context.Context, org string) (bool, error) {
	return h.emergency && org == h.org, nil
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	h := &fixture{t: t, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), source: "192.0.2.1", private: true}
	now := func() time.Time { return h.now }
	b := bus.New()
	orgs := org.New(d, b, now)
	o, err := orgs.Create(context.Background(), "Acme", "DE")
	if err != nil {
		t.Fatal(err)
	}
	s, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	outbox := &event.Outbox{DB: d, Bus: b, Clock: clock.Func(func() time.Time { return h.now })}
	users := usertest.New(d, orgs, outbox, b, now)
	c := devicetest.Config(d, users, s, outbox, b, now, "soniq")
	c.Templates, c.Emergency = Catalog{}, h
	h.org, h.devices = o.ID, device.New(c)
	h.server = New(Config{Devices: h.devices, Zones: orgs, Log: slog.New(slog.DiscardHandler), Clock: clock.Func(now), Realm: "soniq",
		NTP: "pool.ntp.org", Interval: 24 * time.Hour, Registrar: h})
	h.router = http.NewServeMux()
	serve := func(w http.ResponseWriter, r *http.Request) { h.server.Serve(w, r, h.private) }
	h.router.HandleFunc("GET /provision/{token}/{$}", serve)
	h.router.HandleFunc("GET /provision/{token}/{file}", serve)
	h.api = optest.New(t, d, append(h.devices.Operations(), users.Operations()...)...)
	h.user = h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada","last_name":"Lovelace","provision_sip":false}`).Want(201).Text("id")
	return h
}

func (h *fixture) do(method, path string, body any) *optest.Answer {
	h.t.Helper()
	return h.api.Do(optest.Admin(h.org), method, path, body)
}

// phone adds a phone, and returns its id and the path of its address.
func (h *fixture) phone(more string) (id, address string) {
	h.t.Helper()
	a := h.do("POST", "/devices", `{"user_id":"`+h.user+`","name":"Desk","kind":"desk_phone"`+more+`}`).Want(201)
	return a.Text("id"), strings.TrimPrefix(a.Text("provisioning_url"), "https://voice.example.com")
}

// get requests a file. more alternates names and values of headers.
func (h *fixture) get(address, agent string, more ...string) *httptest.ResponseRecorder {
	h.t.Helper()
	r := httptest.NewRequest("GET", address, nil)
	r.Header.Set("User-Agent", agent)
	for i := 0; i+1 < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	r = r.WithContext(op.WithClientAddress(r.Context(), netip.MustParseAddr(h.source)))
	w := httptest.NewRecorder()
	h.router.ServeHTTP(w, r)
	return w
}

// want requests a file and compares the status.
func (h *fixture) want(status int, address, agent string, more ...string) string {
	h.t.Helper()
	w := h.get(address, agent, more...)
	if w.Code != status {
		h.t.Errorf("%s for %q: %d, want %d: %s", address, agent, w.Code, status, w.Body)
	}
	return w.Body.String()
}

func (h *fixture) provisioningState(id string) (status string, fetched any) {
	h.t.Helper()
	a := h.do("GET", "/devices/"+id, nil).Want(200)
	if a.At("provisioning.url") != nil || a.Has("", "provisioning_url") || strings.Contains(string(a.Bytes), "/provision/") {
		h.t.Errorf("the address is told twice: %s", a.Bytes)
	}
	return a.Text("provisioning.status"), a.At("provisioning.last_fetch_at")
}

func (h *fixture) logsIn(id, password string) bool {
	h.t.Helper()
	username := h.do("GET", "/devices/"+id, nil).Want(200).Text("sip.username")
	a, _, err := h.devices.Account(context.Background(), username)
	if err != nil {
		h.t.Fatal(err)
	}
	m, _ := device.HA1(username, "soniq", password)
	return a.HA1MD5 == m
}

func value(t *testing.T, body, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` = (.*)$`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no %s in %s", name, body)
	}
	return m[1]
}
