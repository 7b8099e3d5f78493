package directory_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/pbx"
)

// outsideNumber is a number that the calls of the tests go to.
const outsideNumber = "+493012345678"

// trunk adds a trunk and returns its id.
func (h *fixture) trunk(name, more string) string {
	return h.do("POST", "/trunks", `{"name":"`+name+`","host":"`+name+`.carrier.example"`+more+`}`).Want(201).Text("id")
}

// number adds a number of a trunk and returns its id.
func (h *fixture) number(number, trunk, more string) string {
	return h.do("POST", "/numbers", `{"number":"`+number+`","trunk_id":"`+trunk+`"`+more+`}`).Want(201).Text("id")
}

// readyToCall allows outbound calls without an emergency service.
func (h *fixture) readyToCall() {
	h.do("PATCH", "/organization", `{"emergency":{"acknowledged":true}}`).Want(200)
}

// simulate returns what a route test says: the refusal if there is one, and the trunks with their reasons. Those that are
// not used have a minus.
func (h *fixture) simulate(t *testing.T, body string) (refused, trunks string) {
	t.Helper()
	var out struct {
		RefusedReason *string `json:"refused_reason"`
		Trunks        []struct {
			Name, Reason string
			Used         bool
			Dialled      *string
		}
	}
	if err := json.Unmarshal(h.do("POST", "/trunks/route-test", body).Want(200).Bytes, &out); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, x := range out.Trunks {
		text := x.Name + ":" + x.Reason
		if !x.Used {
			text = "-" + text
		} else if x.Dialled != nil {
			text += "=" + *x.Dialled
		}
		all = append(all, text)
	}
	if out.RefusedReason != nil {
		refused = *out.RefusedReason
	}
	return refused, strings.Join(all, " ")
}

// A route test says the trunks in the order in which the switch is told to try them.
func TestRouteTest_SameOrderAsTheSwitch(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.readyToCall()
		h.trunk("cheap", `,"priority":1`)
		home := h.trunk("home", `,"priority":5,"prefix_rules":[{"match":"+49","strip":3,"prepend":"0"}]`)
		h.trunk("open", `,"priority":7,"foreign_numbers":true`)
		h.trunk("far", `,"prefix_rules":[{"match":"+44","strip":0,"prepend":""}]`)
		h.trunk("in", `,"direction":"inbound"`)
		h.trunk("off", `,"enabled":false`)
		ada := h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada"}`).Want(201).Text("id")
		number := h.number("+493055500001", home, "")
		h.do("PATCH", "/users/"+ada, `{"outbound_number_id":"`+number+`"}`).Want(200)
		refused, got := h.simulate(t, `{"to":"030 12345678","user_id":"`+ada+`"}`)
		want := "home:home=03012345678 open:foreign_numbers=+493012345678 cheap:failover=+493012345678 " +
			"-far:no_matching_rule -in:inbound_only -off:disabled"
		if refused != "" || got != want {
			t.Errorf("%s %s\nwant %s", refused, got, want)
		}
		exit, err := h.RouteOutbound(context.Background(), pbx.Caller{Org: h.org, UserID: ada}, "030 12345678")
		if err != nil || exit.Refused != nil {
			t.Fatal(err, exit.Refused)
		}
		defer exit.Release()
		var real []string
		for _, x := range exit.Trunks {
			real = append(real, x.Number)
		}
		if said := "03012345678 +493012345678 +493012345678"; strings.Join(real, " ") != said || exit.Trunks[0].ID != home {
			t.Errorf("the switch is told %v", real)
		}
	})
}

// A route test knows what a call would meet at this moment, and takes nothing of it.
func TestRouteTest_LimitsOfTheMoment(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.readyToCall()
		h.trunk("one", `,"priority":1,"max_channels":1`)
		h.trunk("two", "")
		body := `{"to":"` + outsideNumber + `"}`
		for range 3 {
			if refused, got := h.simulate(t, body); refused != "" || got != "one:priority="+outsideNumber+" two:priority="+outsideNumber {
				t.Fatal(refused, got)
			}
		}
		exit, err := h.RouteOutbound(context.Background(), pbx.Caller{Org: h.org}, outsideNumber)
		if err != nil || exit.Refused != nil {
			t.Fatal(err, exit.Refused)
		}
		release, ok := exit.Trunks[0].Acquire(nil)
		if !ok {
			t.Fatal("the first channel is not free")
		}
		if refused, _ := h.simulate(t, body); refused != "destination_calls_per_second" {
			t.Errorf("a second call to the number at once: %q", refused)
		}
		if refused, got := h.simulate(t, `{"to":"+493012345679"}`); refused != "" || got != "two:priority=+493012345679 -one:channels_full" {
			t.Errorf("%s %s", refused, got)
		}
		release()
		exit.Release()
		h.do("PATCH", "/organization", `{"outbound":{"concurrent_calls":1}}`).Want(200)
		if exit, err = h.RouteOutbound(context.Background(), pbx.Caller{Org: h.org}, "+493012345670"); err != nil || exit.Refused != nil {
			t.Fatal(err, exit.Refused)
		}
		if refused, got := h.simulate(t, `{"to":"+493012345671"}`); refused != "concurrent_calls" || got != "-one:refused -two:refused" {
			t.Errorf("%s %s", refused, got)
		}
		exit.Release()
	})
}

func TestRouteTest_Refusals(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.trunk("a", "")
		ada := h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada","extension":"101"}`).Want(201).Text("id")
		for body, want := range map[string]string{
			`{"to":"` + outsideNumber + `"}`: "emergency_not_acknowledged -a:refused",
			`{"to":"+442079460018"}`:         "emergency_not_acknowledged -a:refused",
			`{"to":"112"}`:                   "emergency_not_available -a:not_emergency_capable",
			`{"to":"4"}`:                     "invalid_number -a:refused",
			`{"to":"101"}`:                   "internal_destination ",
		} {
			if refused, got := h.simulate(t, body); refused+" "+got != want {
				t.Errorf("%s: %s %s, want %s", body, refused, got, want)
			}
		}
		h.readyToCall()
		h.do("PATCH", "/users/"+ada, `{"status":"suspended"}`).Want(200)
		for body, want := range map[string]string{
			`{"to":"+442079460018"}`:                                 "country_not_allowed -a:refused",
			`{"to":"0900 1234567"}`:                                  "number_type_blocked -a:refused",
			`{"to":"` + outsideNumber + `","user_id":"` + ada + `"}`: "user_suspended -a:refused",
		} {
			if refused, got := h.simulate(t, body); refused+" "+got != want {
				t.Errorf("%s: %s %s, want %s", body, refused, got, want)
			}
		}
		if err := h.trunks.SetOutboundKillSwitch(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if refused, got := h.simulate(t, `{"to":"`+outsideNumber+`"}`); refused != "outbound_halted" || got != "-a:refused" {
			t.Errorf("%s %s", refused, got)
		}
		for body, want := range map[string]string{
			`{"to":"+493012345678","from":"+493099999999"}`:                                    "from number_not_owned",
			`{"to":"+493012345678","user_id":"usr_0"}`:                                         "user_id not_found",
			`{"to":"+493012345678","source_address":"192.0.2.1"}`:                              "source_address not_applicable",
			`{"to":"+493012345678","direction":"inbound"}`:                                     "source_address required",
			`{"to":"+493012345678","direction":"inbound","source_address":"here"}`:             "source_address invalid_address",
			`{"to":"+493012345678","direction":"inbound","source_address":"::1","from":"123"}`: "from not_applicable",
		} {
			h.do("POST", "/trunks/route-test", body).Want(422).Refused("validation_failed", want)
		}
	})
}

// A route test of an inbound call names the number and the trunk that the switch finds, and nothing of other
// organisations.
func TestRouteTest_Inbound(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		a, b := h.trunk("a", `,"allowed_ips":["192.0.2.0/24"]`), h.trunk("b", `,"allowed_ips":["192.0.2.9","198.51.100.1"]`)
		h.trunk("out", `,"direction":"outbound","allowed_ips":["192.0.2.10"]`)
		h.trunk("login", `,"inbound":{"username":"carrier","password":"a long secret"}`)
		ada := h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada"}`).Want(201).Text("id")
		h.number("+493055500001", a, `,"user_id":"`+ada+`"`)
		h.number("+493055500002", b, "")
		ask := func(to, source string) *optest.Answer {
			return h.do("POST", "/trunks/route-test", `{"direction":"inbound","to":"`+to+`","source_address":"`+source+`"}`).Want(200)
		}
		if x := ask("030 55500001", "192.0.2.9"); x.Text("trunk_id") != a || x.Text("destination") != "user:"+ada || x.Text("number") != "+493055500001" {
			t.Errorf("%s", x.Bytes)
		}
		if x := ask("+493055500002", "::ffff:198.51.100.1"); x.Text("trunk_id") != b {
			t.Errorf("%s", x.Bytes)
		}
		inbound := func(to, source string) string {
			refused, got := h.simulate(t, `{"direction":"inbound","to":"`+to+`","source_address":"`+source+`"}`)
			return refused + " " + got
		}
		for _, x := range [][3]string{
			{"+493055500002", "192.0.2.1", "other_trunk a:source -b:other_source -out:outbound_only -login:after_login"},
			{"+493055500003", "192.0.2.9", "not_your_number a:source b:source -out:outbound_only -login:after_login"},
			{"+493055500001", "203.0.113.1", "other_trunk -a:other_source -b:other_source -out:outbound_only -login:after_login"},
			{"4", "192.0.2.9", "invalid_number a:source b:source -out:outbound_only -login:after_login"},
		} {
			if got := inbound(x[0], x[1]); got != x[2] {
				t.Errorf("%s from %s: %s, want %s", x[0], x[1], got, x[2])
			}
		}
	})
}

// An organisation that shares a carrier learns from a route test no number of the other one.
func TestRouteTest_TellsNothingOfOthers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.number("+493055500001", h.trunk("a", `,"allowed_ips":["192.0.2.1"]`), "")
		other, err := h.orgs.Create(context.Background(), "Other", "DE")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.trunks.Confirm(context.Background(), other.ID, "192.0.2.1"); err != nil {
			t.Fatal(err)
		}
		do := func(path, body string) *optest.Answer { return h.server.Do(optest.Admin(other.ID), "POST", path, body) }
		trunk := do("/trunks", `{"name":"x","host":"192.0.2.1"}`).Want(201).Text("id")
		ask := func(number string) string {
			return string(do("/trunks/route-test", `{"direction":"inbound","to":"`+number+`","source_address":"192.0.2.1"}`).Want(200).Bytes)
		}
		taken, free := ask("+493055500001"), ask("+493055500002")
		if strings.ReplaceAll(taken, "+493055500001", "+493055500002") != free || !strings.Contains(free, "not_your_number") {
			t.Errorf("%s\n%s", taken, free)
		}
		for _, n := range []string{"+493055500001", "+493055500002"} {
			do("/numbers", `{"number":"`+n+`","trunk_id":"`+trunk+`"}`).Want(202)
		}
		taken, free = ask("+493055500001"), ask("+493055500002")
		if strings.ReplaceAll(taken, "+493055500001", "+493055500002") != free || !strings.Contains(free, "awaiting_proof") {
			t.Errorf("%s\n%s", taken, free)
		}
	})
}
