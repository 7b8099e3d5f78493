package trunk_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/op/optest"
	trunkpkg "soniq/internal/telephony/trunk"
)

// other adds an organisation and returns its id.
func (h *fixture) other(t *testing.T) string {
	t.Helper()
	o, err := h.orgs.Create(context.Background(), "Other", "DE")
	if err != nil {
		t.Fatal(err)
	}
	return o.ID
}

func (h *fixture) matches(t *testing.T, address, trunk string) bool {
	t.Helper()
	ok, err := h.MatchesSource(context.Background(), netip.MustParseAddr(address), trunk)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// A more specific network took the calls of the carrier's other organisation.
func TestMatchesSource_EveryPrefixLength(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	wide, narrow := h.createTrunk("a", `,"allowed_ips":["192.0.2.0/24"]`), h.createTrunk("b", `,"allowed_ips":["192.0.2.9"]`)
	far := h.createTrunk("c", `,"allowed_ips":["198.51.100.0/24"],"direction":"outbound"`)
	for _, x := range []struct {
		address, trunk string
		want           bool
	}{{"192.0.2.9", wide, true}, {"192.0.2.9", narrow, true}, {"192.0.2.8", wide, true}, {"192.0.2.8", narrow, false},
		{"198.51.100.1", far, false}} {
		if got := h.matches(t, x.address, x.trunk); got != x.want {
			t.Errorf("%s from %s: %v, want %v", x.trunk, x.address, got, x.want)
		}
	}
}

func TestNetworks_OverlapNeedsOperator(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.createTrunk("theirs", `,"allowed_ips":["192.0.2.0/24"]`)
		mallory := h.other(t)
		ask := func(method, path, body string) *optest.Answer {
			return h.server.Do(optest.Admin(mallory), method, path, body)
		}
		for body, field := range map[string]string{
			`{"name":"x","host":"192.0.2.9"}`:                                                    "host",
			`{"name":"x","host":"sip.x.example","allowed_ips":["192.0.2.128/25"]}`:               "allowed_ips",
			`{"name":"x","host":"sip.x.example","enabled":false,"allowed_ips":["192.0.0.0/16"]}`: "allowed_ips",
			`{"name":"x","host":"sip.x.example","inbound":{"allowed_ips":["::ffff:192.0.2.9"]}}`: "inbound.allowed_ips",
			`{"name":"x","host":"sip.x.example","inbound":{"allowed_ips":["192.0.2.9/32"]}}`:     "inbound.allowed_ips",
		} {
			a := ask("POST", "/trunks", body).Want(422).Refused("validation_failed", field+" needs_confirmation")
			if text := string(a.Bytes); strings.Contains(text, h.org) || strings.Contains(text, "theirs") || !strings.Contains(text, "soniq admin trunks confirm --org "+mallory) {
				t.Errorf("the refusal is %s", text)
			}
		}
		id := ask("POST", "/trunks", `{"name":"x","host":"198.51.100.1"}`).Want(201).Text("id")
		ask("PATCH", "/trunks/"+id, `{"host":"192.0.2.9"}`).Want(422).Refused("validation_failed", "host needs_confirmation")
		if _, err := h.Confirm(context.Background(), mallory, "192.0.2.8/31"); err != nil {
			t.Fatal(err)
		}
		ask("PATCH", "/trunks/"+id, `{"host":"192.0.2.9"}`).Want(200)
		ask("PATCH", "/trunks/"+id, `{"host":"192.0.2.10"}`).Want(422).Refused("validation_failed", "host needs_confirmation")
		if !h.matches(t, "192.0.2.9", id) {
			t.Error("a confirmed address is not the trunk's")
		}
		h.createTrunk("mine again", `,"allowed_ips":["192.0.2.77"]`)
	})
}

// Whoever owns a name may let it point anywhere: what DNS returns never takes part in the calls of a listed network.
func TestNetworks_ResolvedNameGetsNoForeignCalls(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	theirs := h.createTrunk("theirs", `,"allowed_ips":["192.0.2.0/24"]`)
	mallory := h.other(t)
	evil := h.server.Do(optest.Admin(mallory), "POST", "/trunks", `{"name":"x","host":"evil.example"}`).Want(201).Text("id")
	h.ResolveHosts(context.Background(), &fakeDNS{zone: map[string][]string{"evil.example": {"192.0.2.1", "198.51.100.1"}}})
	if h.matches(t, "192.0.2.1", evil) || !h.matches(t, "192.0.2.1", theirs) || !h.matches(t, "198.51.100.1", evil) {
		t.Error("a name of a stranger points into the carrier's network")
	}
	if shared, err := h.SharedSource(context.Background(), h.org, theirs); err != nil || shared {
		t.Errorf("the stranger's name makes our network shared: %v, %v", shared, err)
	}
	if _, err := h.Confirm(context.Background(), mallory, "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	if !h.matches(t, "192.0.2.1", evil) {
		t.Error("the operator's confirmation has no effect")
	}
	if shared, err := h.SharedSource(context.Background(), mallory, evil); err != nil || !shared {
		t.Errorf("a network that others list is not shared: %v, %v", shared, err)
	}
}

func TestSandboxTrunk_NeverMatchesASource(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		twin := h.sandboxOf(t)
		id := h.server.Do(optest.Admin(twin), "POST", "/trunks", `{"name":"x","host":"192.0.2.7","inbound":{"username":"c","password":"secret-0"}}`).
			Want(201).Text("id")
		if h.sourceTrunk(t, "192.0.2.7") != "" || h.matches(t, "192.0.2.7", id) {
			t.Error("a sandbox trunk has the calls of an address")
		}
		if _, ok, err := h.InboundAccount(context.Background(), "c"); ok || err != nil {
			t.Errorf("a carrier logs in at a sandbox: %v", err)
		}
		if all, err := h.Enabled(context.Background()); err != nil || len(all) != 0 {
			t.Errorf("a sandbox trunk is registered and probed: %v, %v", all, err)
		}
		h.createTrunk("live", `,"allowed_ips":["192.0.2.7"]`)
	})
}

// A source is exempt from bans once it is proven, not because somebody lists it.
func TestExempt_ConfirmedOrProvedByCall(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.createTrunk("a", `,"allowed_ips":["192.0.2.0/24"]`)
		exempt := func(address string, want bool) {
			t.Helper()
			if got, err := h.Exempt(context.Background(), netip.MustParseAddr(address)); err != nil || got != want {
				t.Errorf("%s: %v, %v; want %v", address, got, err, want)
			}
		}
		exempt("192.0.2.1", false)
		for _, address := range []string{"192.0.2.1", "203.0.113.1"} {
			if err := h.CallEstablished(context.Background(), h.org, id, netip.MustParseAddr(address)); err != nil {
				t.Fatal(err)
			}
		}
		exempt("192.0.2.1", true)
		exempt("192.0.2.2", false)
		exempt("203.0.113.1", false)
		if _, err := h.Confirm(context.Background(), h.org, "192.0.2.0/25"); err != nil {
			t.Fatal(err)
		}
		exempt("192.0.2.2", true)
		exempt("192.0.2.200", false)
		h.request("PATCH", "/trunks/"+id, `{"enabled":false}`).Want(200)
		exempt("192.0.2.1", false)
	})
}

func TestHost_MustBeAllowed(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	guard := egress.New([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")})
	h.Service = trunkpkg.New(trunkpkg.Config{DB: h.db, Orgs: h.orgs, Sealer: h.seal, Bus: h.bus, Realm: realm, Hosts: guard})
	h.server = optest.New(t, h.db, h.Operations()...)
	for _, host := range []string{"127.0.0.1", "[::1]", "169.254.169.254", "10.2.0.1", "localhost", "2130706433", "100.100.100.200"} {
		h.request("POST", "/trunks", fmt.Sprintf(`{"name":"x","host":%q}`, host)).Want(422)
	}
	id := h.request("POST", "/trunks", `{"name":"x","host":"10.1.0.1"}`).Want(201).Text("id")
	h.request("PATCH", "/trunks/"+id, `{"host":"10.2.0.1"}`).Want(422).Refused("validation_failed", "host blocked_address")
	h.request("POST", "/trunks", `{"name":"x","host":"sip.carrier.example"}`).Want(201)
}

// The password goes to no address for which it was not given.
func TestUpdate_NewAddressNeedsPassword(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.createTrunk("a", `,"kind":"register","username":"u","password":"secret"`)
		for _, change := range []string{`"host":"evil.example"`, `"port":5070`, `"transport":"tcp"`} {
			h.request("PATCH", "/trunks/"+id, `{`+change+`}`).Want(422).Refused("validation_failed", "password secret_required")
		}
		h.request("PATCH", "/trunks/"+id, `{"host":"sip.carrier.example","name":"b"}`).Want(200)
		h.request("PATCH", "/trunks/"+id, `{"host":"other.example","password":"secret"}`).Want(200)
		h.request("PATCH", "/trunks/"+id, `{"host":"third.example","kind":"ip","password":null}`).Want(200)
	})
}

func TestOrderRoutes_TrunkOfTheNumberShownFirst(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	a := h.createTrunk("a", `,"priority":1`)
	b := h.createTrunk("b", `,"priority":2`)
	h.createTrunk("c", `,"priority":3,"foreign_numbers":true`)
	h.createTrunk("in", `,"priority":0,"direction":"inbound"`)
	h.request("POST", "/trunks", `{"name":"x","host":"sip.x.example","direction":"sideways"}`).Want(422).Refused("validation_failed", "direction invalid_value")
	order := func(home string) string {
		t.Helper()
		p, err := h.Plan(context.Background(), h.org, "030 1234567")
		if err != nil {
			t.Fatal(err)
		}
		p.Routes = h.OrderRoutes(p.Routes, home)
		all, err := h.gate.Explain(context.Background(), h.org, p, home)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, x := range all {
			words = append(words, x.Name+":"+x.Reason)
		}
		return strings.Join(words, " ")
	}
	for home, want := range map[string]string{
		"": "a:priority b:priority c:priority in:inbound_only",
		a:  "a:home c:foreign_numbers b:failover in:inbound_only",
		b:  "b:home c:foreign_numbers a:failover in:inbound_only",
	} {
		if got := order(home); got != want {
			t.Errorf("shown %q: %s, want %s", home, got, want)
		}
	}
	for range 3 {
		h.RecordProbe(b, 0, context.DeadlineExceeded)
	}
	if got := order(b); got != "c:foreign_numbers a:failover b:down in:inbound_only" {
		t.Errorf("the home trunk is down: %s", got)
	}
}

// sandboxOf returns the id of the sandbox of the fixture's organisation.
func (h *fixture) sandboxOf(t *testing.T) (id string) {
	t.Helper()
	row := h.db.Read(context.Background()).QueryRow(context.Background(), `SELECT id FROM orgs WHERE live_id = $1`, h.org)
	if err := row.Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}
