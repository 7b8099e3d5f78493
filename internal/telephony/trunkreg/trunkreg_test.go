package trunkreg

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
)

// registrar is a carrier with one customer account.
type registrar struct {
	mu       sync.Mutex // guards all but saved
	password string
	bindings []sip.Binding
	saved    chan int // receives the number of contacts after each change
}

func (r *registrar) Credentials(_ context.Context, name string) (sip.Account, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	md5, sha := device.HA1(name, "carrier", r.password)
	return sip.Account{ID: name, HA1MD5: md5, HA1SHA256: sha}, name == "acme", nil
}

func (r *registrar) Exempt(context.Context, netip.Addr) bool { return false }

func (r *registrar) IsSourceOf(context.Context, string, netip.AddrPort) bool { return false }

func (r *registrar) Trunk(context.Context, netip.AddrPort, sipmsg.Transport) (string, bool) {
	return "", false
}

func (r *registrar) Save(_ context.Context, _ string, all []sip.Binding) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bindings = all
	r.saved <- len(all)
	return nil
}

// Lose is called for browsers only.
func (r *registrar) Lose(ctx context.Context, account string, left []sip.Binding, _ time.Time) error {
	return r.Save(ctx, account, left)
}

func (r *registrar) Load(context.Context, string) ([]sip.Binding, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bindings, nil
}

func (r *registrar) Invite(context.Context, *sip.Inbound) {}

// fixture holds the trunks, the carrier and the registrations of a test.
type fixture struct {
	trunks        *trunk.Service
	server        *optest.Server
	org           string
	carrier       *registrar
	port          int
	carrierServer *sip.Server
	registrations *Registrations
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	d, b := dbtest.SQLite(t), bus.New()
	keys, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	orgs := org.New(d, b, time.Now)
	o, err := orgs.Create(context.Background(), "Acme", "DE")
	if err != nil {
		t.Fatal(err)
	}
	h := &fixture{org: o.ID, carrier: &registrar{password: "s3cret", saved: make(chan int, 100)}}
	h.trunks = trunk.New(trunk.Config{DB: d, Orgs: orgs, Sealer: keys, Bus: b, Realm: "here", Prober: h})
	outbox := &event.Outbox{DB: d, Bus: b}
	numbers := number.New(number.Config{DB: d, Orgs: orgs, Outbox: outbox, Bus: b, Trunks: h.trunks,
		Destinations: struct{ number.Destinations }{}, Seal: keys, Guard: egress.New(nil),
		Jobs: &job.Queue{Bus: b}, JobQueue: "calls"})
	h.server = optest.New(t, d, append(h.trunks.Operations(), numbers.Operations()...)...)
	there := listenSIP(t, sip.Config{Addr: "127.0.0.1:0", Realm: "carrier", Accounts: h.carrier, Bindings: h.carrier}, h.carrier)
	h.port, h.carrierServer = int(there.Addr().Port()), there
	here := listenSIP(t, sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}}, h.carrier)
	h.registrations = New(Config{Trunks: h.trunks, SIP: here, Bus: b, Log: slog.New(slog.DiscardHandler),
		ProbeInterval: 100 * time.Millisecond})
	return h
}

// Probe implements trunk.Prober.
func (h *fixture) Probe(ctx context.Context, t trunk.Trunk) (time.Duration, error) {
	return h.registrations.Probe(ctx, t)
}

func listenSIP(t *testing.T, c sip.Config, h sip.Handler) *sip.Server {
	t.Helper()
	s, err := sip.Listen(context.Background(), c, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// startRegistrations runs the registrations until stop is called or the test ends.
func (h *fixture) startRegistrations(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { h.registrations.Run(ctx) })
	stop = func() { cancel(); over.Wait() }
	t.Cleanup(stop)
	return stop
}

func (h *fixture) do(method, path string, body any) *optest.Answer {
	return h.server.Do(optest.Admin(h.org), method, path, body)
}

func (h *fixture) saved(t *testing.T) int {
	t.Helper()
	select {
	case n := <-h.carrier.saved:
		return n
	case <-time.After(2 * time.Minute):
		t.Fatal("the carrier heard nothing")
		return 0
	}
}

// waitMember waits until a member of the trunk's record has a value.
func (h *fixture) waitMember(t *testing.T, id, member, want string) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		a := h.do("GET", "/trunks/"+id, nil)
		if a.Text(member) == want {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s never became %s: %s", member, want, a.Bytes)
		case <-tick.C:
		}
	}
}

func TestTrunk_RegistersAndUnregisters(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	stop := h.startRegistrations(t)
	id := h.do("POST", "/trunks", fmt.Sprintf(`{"name":"reg","kind":"register","host":"127.0.0.1","port":%d,"username":"acme","password":"s3cret"}`, h.port)).
		Want(201).Text("id")
	if n := h.saved(t); n != 1 {
		t.Errorf("%d contacts at the carrier", n)
	}
	h.carrier.mu.Lock()
	contact := h.carrier.bindings[0].Contact
	h.carrier.mu.Unlock()
	if !strings.Contains(contact, "sip:acme@") {
		t.Errorf("without a number the contact is %s", contact)
	}
	h.waitMember(t, id, "registration.status", "registered")
	h.waitMember(t, id, "status", "up")
	h.do("PATCH", "/trunks/"+id, `{"enabled":false}`).Want(200)
	if n := h.saved(t); n != 0 {
		t.Errorf("%d contacts at the carrier of a trunk that is switched off", n)
	}
	h.do("POST", "/numbers", fmt.Sprintf(`{"number":"+493012345678","trunk_id":%q}`, id)).Want(201)
	h.do("PATCH", "/trunks/"+id, `{"enabled":true}`).Want(200)
	if n := h.saved(t); n != 1 {
		t.Errorf("%d contacts at the carrier again", n)
	}
	h.carrier.mu.Lock()
	contact = h.carrier.bindings[0].Contact
	h.carrier.mu.Unlock()
	if !strings.Contains(contact, "+493012345678@") {
		t.Errorf("with one number the contact is %s", contact)
	}
	if stop(); h.saved(t) != 0 {
		t.Error("a node that stops stays logged in")
	}
}

func TestTrunk_WrongPasswordIsReported(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.startRegistrations(t)
	id := h.do("POST", "/trunks", fmt.Sprintf(`{"name":"reg","kind":"register","host":"127.0.0.1","port":%d,"username":"acme","password":"wrong"}`, h.port)).
		Want(201).Text("id")
	h.waitMember(t, id, "registration.status", "failed")
	h.waitMember(t, id, "status", "down")
	if a := h.do("GET", "/trunks/"+id, nil); a.Text("last_error") == "" {
		t.Errorf("why? %s", a.Bytes)
	}
	h.do("PATCH", "/trunks/"+id, `{"password":"s3cret"}`).Want(200)
	h.waitMember(t, id, "registration.status", "registered")
}

func TestTrunk_DownWithoutAnswersToOPTIONS(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	id := h.do("POST", "/trunks", fmt.Sprintf(`{"name":"ip","host":"127.0.0.1","port":%d,"transport":"tcp"}`, h.port)).Want(201).Text("id")
	h.startRegistrations(t)
	h.waitMember(t, id, "status", "up")
	for h.do("GET", "/trunks/"+id, nil).At("probe_ms") == nil {
		h.waitMember(t, id, "status", "up")
	}
	if err := h.carrierServer.Close(); err != nil {
		t.Fatal(err)
	}
	h.waitMember(t, id, "status", "down")
	if a := h.do("GET", "/trunks/"+id, nil); a.Text("last_error") == "" || a.At("probe_ms") != nil {
		t.Errorf("got %s", a.Bytes)
	}
}

func TestTrunk_TestedOnRequest(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	id := h.do("POST", "/trunks", fmt.Sprintf(`{"name":"ip","host":"127.0.0.1","port":%d,"transport":"tcp"}`, h.port)).Want(201).Text("id")
	if a := h.do("POST", "/trunks/"+id+"/test", nil).Want(200); a.At("options_ms") == nil || a.At("error") != nil || a.At("registered") != nil {
		t.Errorf("got %s", a.Bytes)
	}
	if err := h.carrierServer.Close(); err != nil {
		t.Fatal(err)
	}
	if a := h.do("POST", "/trunks/"+id+"/test", nil).Want(200); a.At("options_ms") != nil || a.Text("error") == "" {
		t.Errorf("got %s", a.Bytes)
	}
	h.do("POST", "/trunks/trk_none/test", nil).Want(404)
}
