package agent_test

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/identity/user/usertest"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/device/devicetest"
)

// fixture holds the services for a test of agents. Tests move its clock by hand.
type fixture struct {
	*agent.Service
	d       *db.DB
	users   *user.Service
	devices *device.Service
	calls   *call.Service
	org     string
	ada     string // a user with a phone
	phone   string
	server  *optest.Server
	crashed bool // changes of calls are not observed

	mu  sync.Mutex // guards at
	at  time.Time
	ctx context.Context
}

// legObserver publishes presence when a leg changes, as the server does.
type legObserver struct{ *fixture }

func (o legObserver) LegsChanged(org, callID string, users []string) {
	if !o.crashed {
		o.CallChanged(org, callID, users)
	}
}

func (h *fixture) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.at.Add(time.Microsecond) // no two events have the same time
	return h.at
}

func (h *fixture) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.at.Add(d)
}

// registrations publishes the presence of users whose phones register, unless the process crashed.
type registrations struct{ h *fixture }

func (o registrations) RegistrationChanged(org, userID string) {
	if !o.h.crashed {
		o.h.UserChanged(org, userID)
	}
}

// userChange publishes the presence of changed users.
type userChange struct{ h *fixture }

func (o userChange) UserChanged(ctx context.Context, tx db.Querier, u user.User) error {
	return o.h.PublishPresence(ctx, tx, u.OrgID, []string{u.ID})
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	h := &fixture{d: d, at: time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour), ctx: context.Background()}
	b := bus.New()
	s, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	orgs := org.New(d, b, h.now)
	o, err := orgs.Create(h.ctx, "Acme", "GB")
	if err != nil {
		t.Fatal(err)
	}
	h.org = o.ID
	outbox := &event.Outbox{DB: d, Bus: b, Clock: clock.Func(h.now)}
	c := usertest.Config(d, orgs, outbox, b, h.now)
	phones, presences := &struct{ *device.Service }{}, &struct{ *agent.Service }{} // constructed later
	c.Phones, c.Presences = phones, presences
	h.users = user.New(c)
	h.devices = devicetest.New(d, h.users, s, outbox, b, h.now, "sip.example.com")
	h.calls = call.NewService(call.Config{DB: d, Outbox: outbox, Jobs: &job.Queue{Bus: b, Clock: clock.Func(h.now)}, Node: "n1",
		Clock: clock.Func(h.now)})
	h.Service = agent.New(agent.Config{DB: d, Users: h.users, Outbox: outbox, Clock: clock.Func(h.now), Zones: orgs,
		BrowserAway: time.Minute})
	phones.Service, presences.Service = h.devices, h.Service
	h.users.Observe(userChange{h})
	h.devices.Observe(registrations{h})
	h.calls.Observe(legObserver{h})
	h.server = optest.New(t, d, append(append(h.Operations(), h.users.Operations()...), h.devices.Operations()...)...)
	h.ada = h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada","last_name":"L","skills":{"french":7}}`).Want(201).Text("id")
	h.phone = h.do("GET", "/devices?user_id="+h.ada, nil).Want(200).Text("data.0.id")
	return h
}

func (h *fixture) do(method, path string, body any) *optest.Answer {
	return h.server.Do(optest.Admin(h.org), method, path, body)
}

// register registers the phone for an hour.
func (h *fixture) register(t *testing.T) {
	t.Helper()
	b := device.Binding{DeviceID: h.phone, Contact: "sip:ada@192.0.2.9:5060", Source: netip.MustParseAddrPort("192.0.2.9:5060"),
		Transport: "udp", CallID: "c", CSeq: 1, Expires: h.now().Add(time.Hour), Registered: h.now()}
	if err := h.devices.Save(h.ctx, h.phone, []device.Binding{b}); err != nil {
		t.Fatal(err)
	}
	h.publish(t)
}

func (h *fixture) publish(t *testing.T) {
	t.Helper()
	if err := h.PublishChanged(h.ctx); err != nil {
		t.Fatal(err)
	}
}

// wantPresence checks the presence and the active call.
func (h *fixture) wantPresence(t *testing.T, want, call string) *optest.Answer {
	t.Helper()
	a := h.do("GET", "/agents/"+h.ada, nil).Want(200)
	on, _ := a.At("active_call_id").(string)
	if a.Text("presence.status") != want || on != call {
		t.Fatalf("is %s on %q, want %s on %q: %s", a.Text("presence.status"), on, want, call, a.Bytes)
	}
	return a
}

// publishedPresences returns the published presences of ada, in order.
func (h *fixture) publishedPresences(t *testing.T) string {
	t.Helper()
	rows, err := h.d.Read(h.ctx).Query(h.ctx, `SELECT body FROM events WHERE org_id = $1 AND kind = 'agent.presence' ORDER BY id`, h.org)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var body string
		if err := rows.Scan(&body); err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(body, `"status":"`)
		status, _, _ := strings.Cut(rest, `"`)
		all = append(all, status)
	}
	return strings.Join(all, " ")
}

// ring begins a call that rings ada, and publishes it.
func (h *fixture) ring(t *testing.T) call.New {
	t.Helper()
	n := h.ringUnpublished(t)
	h.publish(t)
	return n
}

func (h *fixture) ringUnpublished(t *testing.T) call.New {
	t.Helper()
	n := call.New{Org: h.org, ID: db.NewID("call"), Direction: call.Inbound, Source: "inbound", From: "+442079460001", To: "+442079460002",
		StartedAt: h.now(), CallerSIP: "x"}
	if err := h.calls.Begin(h.ctx, n); err != nil {
		t.Fatal(err)
	}
	err := h.calls.Change(h.ctx, call.Change{Org: h.org, ID: n.ID, Revision: 1, At: h.now(),
		Row: call.State{Status: call.Ringing, Stage: "agent"}, Legs: []call.LegState{{ID: db.NewID("leg"), Role: "agent", UserID: h.ada,
			DeviceID: h.phone, Status: "ringing", StartedAt: h.now()}}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (h *fixture) answer(t *testing.T, n call.New) {
	t.Helper()
	h.answerUnpublished(t, n)
	h.publish(t)
}

func (h *fixture) answerUnpublished(t *testing.T, n call.New) {
	t.Helper()
	err := h.calls.Answered(h.ctx, n, call.Answer{Org: h.org, ID: n.ID, At: h.now(),
		By: call.Party{Role: "agent", UserID: h.ada, Name: "Ada L", DeviceID: h.phone}})
	if err != nil {
		t.Fatal(err)
	}
}

func (h *fixture) end(t *testing.T, n call.New, answered time.Time) {
	t.Helper()
	err := h.calls.End(h.ctx, call.Ended{New: n, At: h.now(), AnsweredAt: answered, Outcome: call.Outcome{Reason: "caller_hangup"}})
	if err != nil {
		t.Fatal(err)
	}
	h.publish(t)
}
