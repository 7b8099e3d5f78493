package queue_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/contactcenter/queue"
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
	"soniq/internal/telephony/call/callback"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/device/devicetest"
)

// fixture holds the services for a test of queues. Tests move its clock by hand.
type fixture struct {
	*queue.Service
	fake      *fakeDependencies
	d         *db.DB
	agents    *agent.Service
	users     *user.Service
	devices   *device.Service
	calls     *call.Service
	callbacks *callback.Service
	jobs      *job.Queue
	org       string
	server    *optest.Server
	ctx       context.Context

	mu sync.Mutex // guards at
	at time.Time
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

// userRemoval removes removed users from queues, and publishes the presence of changed users.
type userRemoval struct{ h *fixture }

func (o userRemoval) UserChanged(ctx context.Context, tx db.Querier, u user.User) error {
	return o.h.agents.PublishPresence(ctx, tx, u.OrgID, []string{u.ID})
}

func (o userRemoval) UserRemoved(ctx context.Context, tx db.Querier, r user.Removal) error {
	return o.h.RemoveUser(ctx, tx, r.OrgID, r.UserID)
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	h := &fixture{fake: &fakeDependencies{}, d: d, at: time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour),
		ctx: context.Background()}
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
	phones, queues := &struct{ *device.Service }{}, &struct{ *queue.Service }{} // constructed later
	c.Phones, c.Queues = phones, queues
	h.users = user.New(c)
	h.devices = devicetest.New(d, h.users, s, outbox, b, h.now, "sip.example.com")
	h.jobs = &job.Queue{Bus: b, Clock: clock.Func(h.now)}
	h.calls = call.NewService(call.Config{DB: d, Outbox: outbox, Jobs: h.jobs, Node: "n1",
		Clock: clock.Func(h.now)})
	h.callbacks = callback.New(callback.Config{DB: d, Jobs: h.jobs, Calls: h.calls, Clock: clock.Func(h.now)})
	h.calls.Observe(h.callbacks)
	h.agents = agent.New(agent.Config{DB: d, Users: h.users, Outbox: outbox, Clock: clock.Func(h.now), Zones: orgs,
		BrowserAway: time.Minute})
	h.Service = queue.New(queue.Config{DB: d, Orgs: orgs, Agents: h.agents, Outbox: outbox, Bus: b, Clock: clock.Func(h.now), Node: "n1",
		Prompts: h.fake, Destinations: h.fake, Numbers: h.fake, Flows: h.fake, PendingReleases: h.fake})
	h.agents.Observe(presenceObserver{h.Service})
	h.calls.Observe(h.Service)
	phones.Service, queues.Service = h.devices, h.Service
	h.users.Observe(userRemoval{h})
	h.server = optest.New(t, d, append(append(h.Operations(), h.users.Operations()...), h.agents.Operations()...)...)
	return h
}

func (h *fixture) do(method, path string, body any) *optest.Answer {
	return h.server.Do(optest.Admin(h.org), method, path, body)
}

// addQueue adds a queue with additional fields of its body.
func (h *fixture) addQueue(more string) string {
	return h.do("POST", "/queues", `{"name":"Support"`+more+`}`).Want(201).Text("id")
}

// addAgent adds a user with a registered phone as a member of the queue.
func (h *fixture) addAgent(t *testing.T, name, queue, more string) string {
	t.Helper()
	id := h.do("POST", "/users", fmt.Sprintf(`{"email":"%s@example.com","first_name":%q}`, name, name)).Want(201).Text("id")
	all, err := h.devices.OfUser(h.ctx, h.d.Read(h.ctx), h.org, id)
	if err != nil {
		t.Fatal(err)
	}
	b := device.Binding{DeviceID: all[0].ID, Contact: "sip:x@192.0.2.9:5060", Source: netip.MustParseAddrPort("192.0.2.9:5060"),
		Transport: "udp", CallID: "c", CSeq: 1, Expires: h.now().Add(100 * time.Hour), Registered: h.now()}
	if err := h.devices.Save(h.ctx, all[0].ID, []device.Binding{b}); err != nil {
		t.Fatal(err)
	}
	h.do("POST", "/queues/"+queue+"/members", fmt.Sprintf(`{"user_id":%q%s}`, id, more)).Want(201)
	if err := h.agents.Reconcile(h.ctx); err != nil {
		t.Fatal(err)
	}
	return id
}

// newCall begins an inbound call.
func (h *fixture) newCall(t testing.TB) string {
	t.Helper()
	n := call.New{Org: h.org, ID: db.NewID("call"), Direction: call.Inbound, Source: "inbound", From: "+442079460001", To: "+442079460002",
		StartedAt: h.now(), CallerSIP: "x"}
	if err := h.calls.Begin(h.ctx, n); err != nil {
		t.Fatal(err)
	}
	return n.ID
}

// enter adds a new caller to a queue.
func (h *fixture) enter(t testing.TB, id string) queue.Entry {
	t.Helper()
	var e queue.Entry
	call := h.newCall(t)
	h.tx(t, func(ctx context.Context, tx db.Querier) (err error) {
		e, err = h.Enter(ctx, tx, queue.Caller{Org: h.org, QueueID: id, CallID: call, From: "+442079460001"})
		return err
	})
	return e
}

func (h *fixture) tx(t testing.TB, f func(ctx context.Context, tx db.Querier) error) {
	t.Helper()
	if err := h.d.TxContext(h.ctx, f); err != nil {
		t.Fatal(err)
	}
}

// candidates returns the names of the candidates, in order.
func (h *fixture) candidates(t *testing.T, e queue.Entry) string {
	t.Helper()
	found, err := h.Candidates(h.ctx, h.d.Read(h.ctx), h.org, e)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range found {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}

// offer makes offers to agents.
func (h *fixture) offer(t *testing.T, e queue.Entry, agents ...string) []queue.Offer {
	t.Helper()
	made, err := h.Offer(h.ctx, e, agents, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return made
}
