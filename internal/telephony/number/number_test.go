package number_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/identity/user/usertest"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
)

// fixture holds the services and records that tests of numbers need.
type fixture struct {
	*number.Service
	db     *db.DB
	orgs   *org.Service
	users  *user.Service
	trunks *trunk.Service
	org    string
	trunk  string
	ada    string
	server *optest.Server

	// Providers of the service, which tests add before their first request.
	providers map[string]number.ProviderAPI
	sellers   map[string]number.ProviderType
	guard     *egress.Guard
}

// releases removes released numbers from users.
type releases struct{ h *fixture }

func (o releases) NumberReleased(ctx context.Context, tx db.Querier, org, id string) error {
	return o.h.users.ClearOutboundNumber(ctx, tx, org, id)
}

// allDestinations accepts every destination.
type allDestinations struct{}

func (allDestinations) CheckTarget(context.Context, string, string) (string, error) { return "", nil }

func (allDestinations) PointingAtNumber(context.Context, db.Querier, number.Number) ([]string, error) {
	return nil, nil
}

// userRemoval passes the numbers of removed users on.
type userRemoval struct{ h *fixture }

func (o userRemoval) UserRemoved(ctx context.Context, tx db.Querier, r user.Removal) error {
	return o.h.RemoveUser(ctx, tx, r.OrgID, r.UserID, r.ReassignTo)
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	b := bus.New()
	s, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	h := &fixture{db: d, orgs: org.New(d, b, time.Now), providers: map[string]number.ProviderAPI{},
		sellers: map[string]number.ProviderType{}, guard: egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})}
	o, err := h.orgs.Create(context.Background(), "Acme", "GB")
	if err != nil {
		t.Fatal(err)
	}
	h.org = o.ID
	outbox := &event.Outbox{DB: d, Bus: b}
	h.users = usertest.New(d, h.orgs, outbox, b, time.Now)
	h.trunks = trunk.New(trunk.Config{DB: d, Orgs: h.orgs, Sealer: s, Bus: b, Realm: "sip.example.com"})
	h.Service = number.New(number.Config{DB: d, Orgs: h.orgs, Outbox: outbox, Bus: b, Trunks: h.trunks,
		Destinations: allDestinations{}, Providers: h.providers, AccountProviders: h.sellers, Seal: s, Guard: h.guard,
		Jobs: &job.Queue{Bus: bus.New()}, JobQueue: "calls"})
	h.Observe(releases{h})
	h.users.Observe(userRemoval{h})
	h.server = optest.New(t, d, append(append(h.Operations(), h.users.Operations()...), h.trunks.Operations()...)...)
	h.trunk = h.do("POST", "/trunks", `{"name":"carrier","host":"192.0.2.1"}`).Want(201).Text("id")
	h.ada = h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada","last_name":"L"}`).Want(201).Text("id")
	return h
}

func (h *fixture) do(method, path string, body any, header ...string) *optest.Answer {
	return h.server.Do(optest.Admin(h.org), method, path, body, header...)
}

// add adds a number on the fixture's trunk.
func (h *fixture) add(text, more string) *optest.Answer {
	return h.do("POST", "/numbers", fmt.Sprintf(`{"number":%q,"trunk_id":%q%s}`, text, h.trunk, more))
}

// assignedTo returns the id to which a number that is dialled over a trunk is assigned; "-" if the number is not
// found.
func (h *fixture) assignedTo(t *testing.T, e164, trunk string) string {
	t.Helper()
	n, ok, err := h.Route(context.Background(), e164, number.Call{TrunkID: trunk})
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return "-"
	}
	if n.AssignedTo.ID == nil {
		return ""
	}
	return *n.AssignedTo.ID
}

func TestCreate_OwnNumberRingsUser(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		if got := h.assignedTo(t, "+442079460018", h.trunk); got != "-" {
			t.Errorf("before: %q", got)
		}
		a := h.add("020 7946 0018", fmt.Sprintf(`,"user_id":%q,"label":"Front desk"`, h.ada)).Want(201)
		if a.Text("number") != "+442079460018" || a.Text("status") != "active" || a.Text("country") != "GB" || a.Text("type") != "local" ||
			a.Text("locality") != "London" || a.Text("assigned_to.type") != "user" || a.Text("assigned_to.name") != "Ada L" {
			t.Errorf("got %s", a.Bytes)
		}
		if got := h.assignedTo(t, "+442079460018", h.trunk); got != h.ada {
			t.Errorf("rings %q", got)
		}
		if got := h.assignedTo(t, "+442079460018", "trk_other"); got != "-" {
			t.Errorf("over another carrier it rings %q", got)
		}
		if u := h.do("GET", "/users/"+h.ada, nil).Want(200); u.At("direct_number_ids.0") != a.Text("id") {
			t.Errorf("user %s", u.Bytes)
		}
		var body string
		row := d.Read(context.Background()).QueryRow(context.Background(), `SELECT body FROM events WHERE org_id = $1 AND kind = 'number.allocated'`, h.org)
		if err := row.Scan(&body); err != nil {
			t.Fatal(err)
		}
		var told struct {
			Data event.NumberAllocated `json:"data"`
		}
		if err := json.Unmarshal([]byte(body), &told); err != nil || told.Data.Number != "+442079460018" ||
			*told.Data.AssignedTo.Name != "Ada L" {
			t.Errorf("told %s, %v", body, err)
		}
	})
}

// A number is assigned in the form in which it is read.
func TestUpdate_AssignedTo(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		path := "/numbers/" + h.add("+442079460018", "").Want(201).Text("id")
		a := h.do("PATCH", path, `{"assigned_to":{"type":"user","id":"`+h.ada+`","name":"as it was read"}}`).Want(200)
		if a.Text("assigned_to.id") != h.ada || a.Text("assigned_to.name") != "Ada L" {
			t.Errorf("%s", a.Bytes)
		}
		for body, want := range map[string]string{
			`{"assigned_to":{"type":"user"}}`:                                     "assigned_to.id required",
			`{"assigned_to":{"type":"queue","id":"que_0"}}`:                       "queue_id not_found",
			`{"user_id":"` + h.ada + `","assigned_to":{"type":"none"}}`:           "assigned_to ambiguous",
			`{"flow_id":null,"assigned_to":{"type":"user","id":"` + h.ada + `"}}`: "assigned_to ambiguous",
		} {
			h.do("PATCH", path, body).Want(422).Refused("validation_failed", want)
		}
		h.do("PATCH", path, `{"assigned_to":{"type":"device","id":"dev_1"}}`).Want(422)
		if a := h.do("PATCH", path, `{"assigned_to":{"type":"none"}}`).Want(200); a.Text("assigned_to.type") != "none" {
			t.Errorf("%s", a.Bytes)
		}
		h.do("PATCH", path, `{"user_id":"`+h.ada+`"}`).Want(200)
		if a := h.do("PATCH", path, `{"assigned_to":null}`).Want(200); a.Text("assigned_to.type") != "none" {
			t.Errorf("%s", a.Bytes)
		}
	})
}

func TestTrunkDelete_RefusedWhileInUse(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.add("+442079460018", "").Want(201).Text("id")
		a := h.do("DELETE", "/trunks/"+h.trunk, nil).Want(409).Refused("in_use")
		if a.At("used_by.0") != id {
			t.Errorf("used by %s", a.Bytes)
		}
		h.do("DELETE", "/numbers/"+id+"?confirm=442079460018", nil).Want(204)
		h.do("DELETE", "/trunks/"+h.trunk, nil).Want(204)
	})
}

func TestNumber_AllViolationsReported(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.do("POST", "/numbers", `{"number":"12","user_id":"usr_none","flow_id":"flw_none","queue_id":"que_none"}`).Want(422).
		Refused("validation_failed", "number invalid_e164", "trunk_id required", "user_id not_found", "flow_id not_found",
			"queue_id not_found", "user_id ambiguous")
	other, _ := h.orgs.Create(context.Background(), "Other", "DE")
	p := optest.Admin(other.ID)
	h.server.Do(p, "POST", "/numbers", fmt.Sprintf(`{"number":"+493012345678","trunk_id":%q,"user_id":%q}`, h.trunk, h.ada)).
		Refused("validation_failed", "trunk_id not_found", "user_id not_found")
	id := h.add("+442079460018", "").Want(201).Text("id")
	h.server.Do(p, "GET", "/numbers/"+id, nil).Want(404)
	h.server.Do(p, "PATCH", "/numbers/"+id, `{"label":"x"}`).Want(404)
	h.server.Do(p, "DELETE", "/numbers/"+id+"?confirm=442079460018", nil).Want(404)
	h.do("PATCH", "/numbers/"+id, `{"trunk_id":null,"user_id":"usr_none","recording_mode":"x","caller_id_name":"`+strings.Repeat("x", 61)+`"}`).
		Refused("validation_failed", "trunk_id required", "user_id not_found", "recording_mode invalid_value", "caller_id_name invalid_length")
}

func TestRoute_SeesChangesAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.add("+442079460018", "").Want(201).Text("id")
		if got := h.assignedTo(t, "+442079460018", h.trunk); got != "" {
			t.Errorf("rings %q", got)
		}
		a := h.do("PATCH", "/numbers/"+id, fmt.Sprintf(`{"user_id":%q,"caller_id_name":"Acme","fallback":"ext:100"}`, h.ada)).Want(200)
		if a.Text("assigned_to.id") != h.ada || a.Text("caller_id_name") != "Acme" {
			t.Errorf("got %s", a.Bytes)
		}
		if got := h.assignedTo(t, "+442079460018", h.trunk); got != h.ada {
			t.Errorf("rings %q", got)
		}
		bob := h.do("POST", "/users", `{"email":"bob@example.com","first_name":"Bob"}`).Want(201).Text("id")
		h.do("DELETE", "/users/"+h.ada+"?reassign_to="+bob, nil).Want(204)
		if got := h.assignedTo(t, "+442079460018", h.trunk); got != bob {
			t.Errorf("after the removal it rings %q", got)
		}
		h.do("DELETE", "/users/"+bob, nil).Want(204)
		if got := h.assignedTo(t, "+442079460018", h.trunk); got != "" {
			t.Errorf("after both removals it rings %q", got)
		}
		h.do("PATCH", "/numbers/"+id, fmt.Sprintf(`{"user_id":%q}`, bob)).Refused("validation_failed", "user_id not_found")
	})
}

func TestCallerID_Selection(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ctx := context.Background()
		caller := func() string {
			n, err := h.CallerID(ctx, d.Read(ctx), h.org, h.ada)
			if err != nil && !db.IsNone(err) {
				t.Fatal(err)
			}
			return n.Number
		}
		if got := caller(); got != "" {
			t.Errorf("without numbers: %s", got)
		}
		h.add("+442079460001", "").Want(201)
		if got := caller(); got != "+442079460001" {
			t.Errorf("the organisation's: %s", got)
		}
		h.add("+442079460002", fmt.Sprintf(`,"user_id":%q`, h.ada)).Want(201)
		if got := caller(); got != "+442079460002" {
			t.Errorf("her own: %s", got)
		}
		id := h.add("+442079460003", "").Want(201).Text("id")
		h.do("PATCH", "/users/"+h.ada, fmt.Sprintf(`{"outbound_number_id":%q}`, id)).Want(200)
		if got := caller(); got != "+442079460003" {
			t.Errorf("the chosen one: %s", got)
		}
		h.do("DELETE", "/numbers/"+id+"?confirm=442079460003", nil).Want(204)
		if got := caller(); got != "+442079460002" {
			t.Errorf("after the release: %s", got)
		}
		if u := h.do("GET", "/users/"+h.ada, nil); u.At("outbound_number_id") != nil {
			t.Errorf("user %s", u.Bytes)
		}
		if _, err := h.Owned(ctx, d.Read(ctx), h.org, "+442079460001"); err != nil {
			t.Error(err)
		}
		for _, foreign := range []string{"+442079460003", "+442079460009"} {
			if _, err := h.Owned(ctx, d.Read(ctx), h.org, foreign); !db.IsNone(err) {
				t.Errorf("%s is owned: %v", foreign, err)
			}
		}
		if _, err := h.Owned(ctx, d.Read(ctx), "org_other", "+442079460001"); !db.IsNone(err) {
			t.Errorf("another organisation owns it: %v", err)
		}
	})
}

func TestList_FiltersAndPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.add("+442079460001", fmt.Sprintf(`,"user_id":%q`, h.ada)).Want(201)
		h.add("+442079460002", `,"label":"Sales"`).Want(201)
		gone := h.add("+442079460003", "").Want(201).Text("id")
		h.do("DELETE", "/numbers/"+gone+"?confirm=442079460003", nil).Want(204)
		for path, want := range map[string]string{"": "1 2", "?user_id=" + h.ada: "1", "?q=sales": "2", "?q=60002": "2", "?q=%25": "",
			"?status=released": "3", "?status=released,active": "1 2 3", "?capability=voice": "1 2", "?capability=fax": "", "?flow_id=flw_x": ""} {
			if got := lastDigits(h.do("GET", "/numbers"+path, nil).Want(200)); got != want {
				t.Errorf("%s finds %q, want %q", path, got, want)
			}
		}
		first := h.do("GET", "/numbers?limit=1&include_total=true", nil).Want(200)
		if first.At("total") != float64(2) {
			t.Errorf("total of %s", first.Bytes)
		}
		second := h.do("GET", "/numbers?limit=1&cursor="+first.Text("next_cursor"), nil).Want(200)
		if lastDigits(first) != "1" || lastDigits(second) != "2" || second.At("has_more") != false {
			t.Errorf("pages %s %s", first.Bytes, second.Bytes)
		}
	})
}

// lastDigits returns the last digit of each number of a list.
func lastDigits(a *optest.Answer) string {
	var all []string
	list, _ := a.Body["data"].([]any)
	for _, n := range list {
		text := n.(map[string]any)["number"].(string)
		all = append(all, text[len(text)-1:])
	}
	return strings.Join(all, " ")
}

func TestParse_NationalFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, country, want string }{
		{"(020) 7946-0018", "GB", "+442079460018"}, {"00 44 20 7946 0018", "GB", "+442079460018"},
		{"+44(0)20 7946 0018", "DE", "+442079460018"}, {"030 12345678", "DE", "+493012345678"}, {"(202) 555-0101", "US", "+12025550101"},
		{"+1 555 123 4567", "DE", "+15551234567"}, // possible, but of no known range
		{"12", "GB", ""}, {"", "GB", ""}, {"abc", "GB", ""}, {"+442079460018 ext 3", "GB", ""}, {"2079460018000000", "GB", ""},
		{"+999123456789", "GB", ""},
	} {
		got, ok := number.Parse(c.text, c.country)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q in %s is %q, want %q", c.text, c.country, got, c.want)
		}
	}
}

func TestNumber_JSONHasEveryField(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	a := h.add("+442079460018", "").Want(201)
	for _, name := range []string{"id", "number", "country", "region", "locality", "type", "capabilities", "status", "label", "provider",
		"trunk_id", "assigned_to", "sms_enabled", "caller_id_name", "recording_mode", "fallback", "emergency", "monthly_cost",
		"allocated_at", "released_at"} {
		if !a.Has("", name) {
			t.Errorf("%s is missing: %s", name, a.Bytes)
		}
	}
}

func TestCapabilities_SMSOfOwnNumber(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.add("+442079460018", `,"sms_enabled":true`).Want(201).Text("id")
		h.add("+442079460019", "").Want(201)
		can := func() string { return fmt.Sprint(h.do("GET", "/numbers/"+id, nil).Want(200).At("capabilities")) }
		if got := can(); got != "[voice sms]" {
			t.Errorf("it can do %s", got)
		}
		list := h.do("GET", "/numbers?capability=sms", nil).Want(200)
		if list.Text("data.0.id") != id || list.At("data.1") != nil {
			t.Errorf("listed %s", list.Bytes)
		}
		h.do("PATCH", "/numbers/"+id, `{"sms_enabled":false}`).Want(200)
		if got := can(); got != "[voice]" {
			t.Errorf("switched off it can do %s", got)
		}
		if list := h.do("GET", "/numbers?capability=sms", nil).Want(200); list.At("data.0") != nil {
			t.Errorf("listed %s", list.Bytes)
		}
	})
}
