package trunk_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
	"soniq/internal/telephony/device"
	trunkpkg "soniq/internal/telephony/trunk"
)

const realm = "sip.example.com"

// fixture has a trunk service with its dependencies and one organisation.
type fixture struct {
	*trunkpkg.Service
	db     *db.DB
	orgs   *org.Service
	org    string
	server *optest.Server
	limits *trunkpkg.Limiter
	gate   *trunkpkg.OutboundGate
	bus    *bus.Bus
	seal   *seal.Seal
}

func newFixture(t testing.TB, d *db.DB) *fixture {
	t.Helper()
	b := bus.New()
	s, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	h := &fixture{db: d, bus: b, seal: s, orgs: org.New(d, b, time.Now)}
	o, err := h.orgs.Create(context.Background(), "Acme", "DE")
	if err != nil {
		t.Fatal(err)
	}
	h.org = o.ID
	h.limits = trunkpkg.NewLimiter(time.Now)
	h.Service = trunkpkg.New(trunkpkg.Config{DB: d, Orgs: h.orgs, Sealer: s, Bus: b, Realm: realm, Limits: h.limits})
	h.gate = trunkpkg.NewOutboundGate(h.Service, h.limits, slog.New(slog.DiscardHandler))
	h.server = optest.New(t, d, append(h.Operations(), h.orgs.Operations()...)...)
	h.acknowledge()
	return h
}

func (h *fixture) request(method, path string, body any, header ...string) *optest.Answer {
	return h.server.Do(optest.Admin(h.org), method, path, body, header...)
}

// acknowledge acknowledges that emergency calls are not available.
func (h *fixture) acknowledge() {
	h.request("PATCH", "/organization", `{"emergency":{"acknowledged":true}}`).Want(200)
}

// createTrunk adds a trunk to the fixture's organisation and returns its id.
func (h *fixture) createTrunk(name, more string) string {
	return h.request("POST", "/trunks", fmt.Sprintf(`{"name":%q,"host":"sip.carrier.example"%s}`, name, more)).Want(201).Text("id")
}

func (h *fixture) sourceTrunk(t *testing.T, address string) string {
	t.Helper()
	trunk, ok, err := h.BySource(context.Background(), netip.MustParseAddr(address))
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return ""
	}
	return trunk.TrunkID
}

// planText returns a plan as text: the trunks with the number dialled on each, or the reason of the refusal.
func (h *fixture) planText(t *testing.T, dialled string) string {
	t.Helper()
	p, err := h.Plan(context.Background(), h.org, dialled)
	var no *trunkpkg.Refusal
	if errors.As(err, &no) {
		return string(no.Reason)
	}
	if err != nil {
		t.Fatal(err)
	}
	words := []string{}
	if p.Emergency {
		words = append(words, "emergency")
	}
	for _, w := range p.Routes {
		words = append(words, w.Trunk.Name+":"+w.Dial)
	}
	return strings.Join(words, " ")
}

func TestBySource_LongestPrefix(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		wide := h.createTrunk("wide", `,"allowed_ips":["192.0.2.0/24"]`)
		narrow := h.createTrunk("narrow", `,"inbound":{"allowed_ips":["192.0.2.7","2001:db8::/48"]}`)
		host := h.request("POST", "/trunks", `{"name":"host","host":"198.51.100.1"}`).Want(201).Text("id")
		for address, want := range map[string]string{"192.0.2.1": wide, "192.0.2.7": narrow, "::ffff:192.0.2.7": narrow,
			"2001:db8::5": narrow, "2001:db8:1::5": "", "198.51.100.1": host, "198.51.100.2": "", "127.0.0.1": ""} {
			if got := h.sourceTrunk(t, address); got != want {
				t.Errorf("%s is %q, want %q", address, got, want)
			}
		}
		h.request("PATCH", "/trunks/"+narrow, `{"enabled":false}`).Want(200)
		if got := h.sourceTrunk(t, "192.0.2.7"); got != wide {
			t.Errorf("the disabled trunk still answers: %q", got)
		}
		h.request("DELETE", "/trunks/"+wide, nil).Want(204)
		if got := h.sourceTrunk(t, "192.0.2.7"); got != "" {
			t.Errorf("the removed trunk still answers: %q", got)
		}
	})
}

func TestPlan_PriorityAndPrefixRules(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.request("PATCH", "/organization", `{"outbound":{"allowed_countries":["DE","AT"]}}`).Want(200)
		if got := h.planText(t, "030 1234567"); got != "no_trunk" {
			t.Errorf("without a trunk: %s", got)
		}
		h.createTrunk("second", `,"priority":20`)
		h.createTrunk("first", `,"priority":0,"prefix_rules":[{"match":"+49","strip":3,"prepend":"0"},{"match":"+4930","strip":5,"prepend":""},{"match":"+49301234567","strip":20,"prepend":""}]`)
		for dialled, want := range map[string]string{
			"040 1234567":    "first:0401234567 second:+49401234567",
			"030 7654321":    "first:7654321 second:+49307654321",
			"+4313586010":    "second:+4313586010", // no rule of the first matches
			"030 1234567":    "second:+49301234567",
			"+33142685300":   "country_not_allowed",
			"+4990012345678": "invalid_number",
		} {
			if got := h.planText(t, dialled); got != want {
				t.Errorf("%s: %q, want %q", dialled, got, want)
			}
		}
	})
}

func TestPlan_EmergencyTrunksOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.createTrunk("plain", "")
		if got := h.planText(t, "0112"); got != "emergency_not_available" {
			t.Errorf("without such a trunk: %s", got)
		}
		if a := h.request("GET", "/organization", nil); a.Text("emergency_calling") != "not_available" {
			t.Errorf("organisation: %s", a.Bytes)
		}
		id := h.createTrunk("able", `,"priority":90,"emergency_capable":true,"prefix_rules":[{"match":"+49","strip":3,"prepend":"0"}]`)
		if a := h.request("GET", "/organization", nil); a.Text("emergency_calling") != "available" || a.Text("emergency.status") != "configured" {
			t.Errorf("organisation: %s", a.Bytes)
		}
		h.request("PATCH", "/organization", `{"outbound":{"enabled":false,"allowed_countries":[]}}`).Want(200)
		if err := h.orgs.SetStatus(context.Background(), h.org, org.Suspended); err != nil {
			t.Fatal(err)
		}
		for dialled, want := range map[string]string{"112": "emergency able:112", "0110": "emergency able:110", "030 1234567": "org_suspended"} {
			if got := h.planText(t, dialled); got != want {
				t.Errorf("%s: %q, want %q", dialled, got, want)
			}
		}
		h.request("PATCH", "/trunks/"+id, `{"enabled":false}`).Want(200)
		if got := h.planText(t, "112"); got != "emergency_not_available" {
			t.Errorf("on a disabled trunk: %s", got)
		}
	})
}

func TestPlan_SandboxHasNoRoutes(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	var err error
	if h.org, err = h.orgs.Twin(context.Background(), h.org); err != nil {
		t.Fatal(err)
	}
	h.createTrunk("able", `,"emergency_capable":true`)
	if a := h.request("GET", "/organization", nil).Want(200); a.Text("emergency_calling") != "not_available" {
		t.Errorf("organisation: %s", a.Bytes)
	}
	for dialled, want := range map[string]string{"112": "emergency_not_available", "030 1234567": "no_trunk"} {
		if got := h.planText(t, dialled); got != want {
			t.Errorf("%s: %q, want %q", dialled, got, want)
		}
	}
}

func TestRefusal_Texts(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	_, err := h.Plan(context.Background(), h.org, "112")
	var no *trunkpkg.Refusal
	if !errors.As(err, &no) {
		t.Fatal(err)
	}
	if status, phrase := no.SIPResponse(); status != 503 || !strings.Contains(phrase, "use a mobile phone") {
		t.Errorf("phones are told %d %s", status, phrase)
	}
	_, err = h.Plan(context.Background(), h.org, "+33142685300")
	if !errors.As(err, &no) || no.Error() != "Calls to this country are not allowed: FR" {
		t.Errorf("got %v", err)
	}
	if e := no.APIError("to"); e.Code != "destination_not_allowed" || e.Status() != 422 {
		t.Errorf("programs are told %v", e)
	}
	_, err = h.Plan(context.Background(), h.org, "12")
	if !errors.As(err, &no) || no.APIError("to").Fields[0].Code != "invalid_e164" {
		t.Errorf("got %v", err)
	}
}

func TestPasswords_SealedAndHidden(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ctx := context.Background()
		a := h.request("POST", "/trunks", `{"name":"reg","kind":"register","host":"sip.carrier.example","username":"acme","password":"s3cret-out",
			"inbound":{"username":"carrier-in","password":"s3cret-in"}}`).Want(201)
		if strings.Contains(string(a.Bytes), "s3cret") || a.Text("registration.status") != "unregistered" || a.Text("status") != "degraded" {
			t.Errorf("got %s", a.Bytes)
		}
		trunk, err := h.Get(ctx, d.Read(ctx), h.org, a.Text("id"))
		if err != nil {
			t.Fatal(err)
		}
		if user, password, err := h.OutboundCredentials(trunk); err != nil || user != "acme" || password != "s3cret-out" {
			t.Errorf("login %s %s %v", user, password, err)
		}
		in, ok, err := h.InboundAccount(ctx, "carrier-in")
		m, s := device.HA1("carrier-in", realm, "s3cret-in")
		if err != nil || !ok || in.TrunkID != trunk.ID || in.HA1MD5 != m || in.HA1SHA256 != s {
			t.Errorf("account %+v %v %v", in, ok, err)
		}
		h.request("PATCH", "/trunks/"+trunk.ID, `{"name":"renamed"}`).Want(200)
		if got, _ := h.Get(ctx, d.Read(ctx), h.org, trunk.ID); got.Name != "renamed" {
			t.Errorf("name %s", got.Name)
		} else if _, password, err := h.OutboundCredentials(got); err != nil || password != "s3cret-out" {
			t.Errorf("a patch without a password changed it: %s %v", password, err)
		}
		h.request("PATCH", "/trunks/"+trunk.ID, `{"inbound":{"password":"other"}}`).Want(200)
		if in, _, _ = h.InboundAccount(ctx, "carrier-in"); in.HA1MD5 == m {
			t.Error("the cache did not hear of the new password")
		}
		h.request("PATCH", "/trunks/"+trunk.ID, `{"password":null}`).Refused("validation_failed", "password required")
		h.request("POST", "/trunks", `{"name":"x","host":"h","inbound":{"username":"carrier-in","password":"x"}}`).Want(409).Refused("already_exists")
		h.SetRegistration(trunk.ID, trunkpkg.Registration{Status: "registered"})
		if a := h.request("GET", "/trunks/"+trunk.ID, nil); a.Text("status") != "up" {
			t.Errorf("registered: %s", a.Bytes)
		}
	})
}

func TestList_Pages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.createTrunk("a", "")
		h.createTrunk("b", "")
		first := h.request("GET", "/trunks?limit=1&include_total=true", nil).Want(200)
		second := h.request("GET", "/trunks?limit=1&cursor="+first.Text("next_cursor"), nil).Want(200)
		if first.Text("data.0.name") != "a" || second.Text("data.0.name") != "b" || first.At("total") != float64(2) || second.At("has_more") != false {
			t.Errorf("pages %s %s", first.Bytes, second.Bytes)
		}
	})
}

func TestCreate_AllViolationsListed(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.request("POST", "/trunks", `{"name":" ","kind":"register","host":"sip:x@y","port":70000,"transport":"smoke","srtp":"x","caller_id_mode":"x",
		"codecs":["mp3"],"max_channels":-1,"calls_per_second":-1,"allowed_ips":["here"],"inbound":{"allowed_ips":["0.0.0.0/0"],"username":"a b"},
		"prefix_rules":[{"match":"abc","strip":0,"prepend":""}]}`).Want(422).
		Refused("validation_failed", "name invalid_length", "host invalid_host", "port out_of_range", "transport invalid_value",
			"srtp invalid_value", "caller_id_mode invalid_value", "codecs invalid_value", "max_channels out_of_range",
			"calls_per_second out_of_range", "allowed_ips invalid_network", "inbound.allowed_ips network_too_wide",
			"inbound.username invalid_username", "inbound.password required", "prefix_rules invalid_prefix",
			"username required", "password required")
	h.request("POST", "/trunks", `{"name":"a","host":"h","hots":"x"}`).Want(400).Refused("unknown_field")
}

func TestTenant_OtherOrganisationNotFound(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id := h.createTrunk("mine", "")
	other, _ := h.orgs.Create(context.Background(), "Other", "DE")
	p := optest.Admin(other.ID)
	h.server.Do(p, "GET", "/trunks/"+id, nil).Want(404)
	h.server.Do(p, "PATCH", "/trunks/"+id, `{"name":"x"}`).Want(404)
	h.server.Do(p, "DELETE", "/trunks/"+id, nil).Want(404)
	if ways, err := h.Routes(context.Background(), other.ID, "+49301234567", "DE"); err != nil || len(ways) != 0 {
		t.Errorf("routes over %v, %v", ways, err)
	}
}

// The peer of a trunk may transfer calls if the trunk is one of kind peer and allows it.
func TestAllowRefer_PeersOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		allowed := func(id string, want bool) {
			t.Helper()
			if got, err := h.AllowsRefer(context.Background(), id); err != nil || got != want {
				t.Errorf("%v, %v; want %v", got, err, want)
			}
		}
		id := h.request("POST", "/trunks", `{"name":"pbx","kind":"peer","host":"sip.pbx.example","direction":"outbound"}`).Want(201).Text("id")
		allowed(id, false)
		h.request("PATCH", "/trunks/"+id, `{"allow_refer":true}`).Want(200)
		allowed(id, true)
		h.request("PATCH", "/trunks/"+id, `{"kind":"ip"}`).Want(422).Refused("validation_failed", "allow_refer invalid_value")
		h.request("POST", "/trunks", `{"name":"x","host":"sip.x.example","allow_refer":true}`).Want(422).Refused("validation_failed", "allow_refer invalid_value")
		h.request("PATCH", "/trunks/"+id, `{"kind":"ip","allow_refer":false}`).Want(200)
		allowed(id, false)
	})
}

func TestShow_AllFields(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	a := h.request("GET", "/trunks/"+h.createTrunk("a", ""), nil).Want(200)
	for _, name := range []string{"id", "name", "kind", "host", "port", "transport", "username", "from_domain", "allowed_ips", "codecs",
		"srtp", "max_channels", "calls_per_second", "priority", "prefix_rules", "caller_id_mode", "status", "registration",
		"active_calls", "answer_seizure_rate", "enabled", "emergency_capable", "inbound", "direction", "foreign_numbers", "allow_refer"} {
		if !a.Has("", name) {
			t.Errorf("%s is missing: %s", name, a.Bytes)
		}
	}
	if a.Has("", "password") || a.Has("inbound", "password") {
		t.Errorf("a password is shown: %s", a.Bytes)
	}
}

func BenchmarkBySource(b *testing.B) {
	h := newFixture(b, dbtest.SQLite(b))
	h.createTrunk("a", `,"allowed_ips":["192.0.2.0/24"]`)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := h.BySource(context.Background(), netip.AddrFrom4([4]byte{192, 0, 2, 7})); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	h := newFixture(b, dbtest.SQLite(b))
	h.createTrunk("a", "")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Plan(context.Background(), h.org, "+49301234567"); err != nil {
			b.Fatal(err)
		}
	}
}
