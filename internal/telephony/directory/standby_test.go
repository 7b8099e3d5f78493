package directory_test

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
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
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/device/devicetest"
	"soniq/internal/telephony/directory"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/trunk"
)

// allDestinations accepts every destination.
type allDestinations struct{}

func (allDestinations) CheckTarget(context.Context, string, string) (string, error) { return "", nil }

func (allDestinations) PointingAtNumber(context.Context, db.Querier, number.Number) ([]string, error) {
	return nil, nil
}

// fixture has a directory with one organisation.
type fixture struct {
	*directory.Directory
	org    string
	orgs   *org.Service
	trunks *trunk.Service
	server *optest.Server
	now    time.Time
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	h := &fixture{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return h.now }
	b := bus.New()
	orgs := org.New(d, b, now)
	o, err := orgs.Create(t.Context(), "Acme", "DE")
	if err != nil {
		t.Fatal(err)
	}
	h.org = o.ID
	s, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	outbox := &event.Outbox{DB: d, Bus: b, Clock: clock.Func(now)}
	c := usertest.Config(d, orgs, outbox, b, now)
	phones := &struct{ *device.Service }{} // constructed later
	c.Phones = phones
	users := user.New(c)
	devices := device.New(devicetest.Config(d, users, s, outbox, b, now, "soniq"))
	phones.Service = devices
	limits := trunk.NewLimiter(now)
	trunks := trunk.New(trunk.Config{DB: d, Orgs: orgs, Sealer: s, Bus: b, Clock: clock.Func(now), Realm: "soniq", Limits: limits})
	gate := trunk.NewOutboundGate(trunks, limits, slog.New(slog.DiscardHandler))
	numbers := number.New(number.Config{DB: d, Orgs: orgs, Outbox: outbox, Bus: b, Clock: clock.Func(now), Trunks: trunks,
		Destinations: allDestinations{}, Providers: map[string]number.ProviderAPI{}, AccountProviders: map[string]number.ProviderType{},
		Seal: s, Guard: egress.New(nil), Jobs: &job.Queue{Bus: b}, JobQueue: "calls"})
	simulation := directory.Simulation{Directory: func() *directory.Directory { return h.Directory }}
	h.server = optest.New(t, d, slices.Concat(devices.Operations(), users.Operations(), trunks.Operations(), orgs.Operations(),
		numbers.Operations(), simulation.Operations())...)
	h.orgs, h.trunks = orgs, trunks
	h.Directory = directory.New(t.Context(), directory.Config{DB: d, Bus: b, Orgs: orgs, Users: users, Devices: devices,
		Numbers: numbers, Trunks: trunks, Gate: gate, Outbox: outbox, Clock: clock.Func(now)})
	return h
}

func (h *fixture) do(method, path, body string) *optest.Answer {
	return h.server.Do(optest.Admin(h.org), method, path, body)
}

// Without a database the emergency calls of registered phones leave as they did with it, and only they.
func TestStandby_EmergencyCallsWithoutDatabase(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.do("POST", "/trunks", `{"name":"carrier","host":"192.0.2.9","emergency_capable":true}`).Want(201)
		h.do("PATCH", "/organization", `{"emergency":{"location":{"country":"DE","city":"Berlin","street":"Ring","house_number":"5"}}}`).Want(200)
		username := h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada"}`).Want(201).Text("sip.username")
		ctx := context.Background()
		if err := h.Save(ctx, username, []sip.Binding{{Contact: "sip:a@192.0.2.7", Source: netip.MustParseAddrPort("192.0.2.7:5060"),
			Transport: "udp", Expires: h.now.Add(time.Hour), Registered: h.now}}); err != nil {
			t.Fatal(err)
		}
		account, _, err := h.Credentials(ctx, username)
		if err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(20 * time.Second); h.StandbyPhones() == 0; {
			if time.Now().After(until) {
				t.Fatal("the phone is not kept in memory")
			}
			<-time.After(time.Millisecond)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		h.now = h.now.Add(9 * time.Minute) // every cache has expired
		if a, ok, err := h.Credentials(ctx, strings.ToUpper(username)); err != nil || !ok || a != account {
			t.Errorf("credentials: %+v %v %v", a, ok, err)
		}
		caller, err := h.Caller(ctx, username)
		if err != nil || caller.Org != h.org || caller.DeviceID == "" {
			t.Errorf("caller: %+v %v", caller, err)
		}
		if p, err := h.Policy(ctx, h.org); err != nil || p.Country != "DE" {
			t.Errorf("policy: %+v %v", p, err)
		}
		if _, ok, err := h.Extension(ctx, h.org, "112"); err != nil || ok {
			t.Errorf("the emergency number is an extension: %v %v", ok, err)
		}
		exit, err := h.RouteOutbound(ctx, caller, "110")
		if err != nil || !exit.Emergency || exit.Number != "110" || len(exit.Trunks) != 1 || !strings.Contains(string(exit.Location), "Berlin") {
			t.Errorf("route: %+v %v", exit, err)
		}
		for _, dialled := range []string{"+493012345678", "911"} {
			if exit, err := h.RouteOutbound(ctx, caller, dialled); err == nil && exit.Refused == nil {
				t.Errorf("%s leaves without the database: %+v", dialled, exit)
			}
		}
		if _, err := h.RouteOutbound(ctx, pbx.Caller{Org: h.org, Program: true}, "112"); err == nil {
			t.Error("a program's emergency call was routed")
		}
	})
}
