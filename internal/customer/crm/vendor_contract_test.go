package crm_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"soniq/internal/customer/crm/vendortest"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// vendorCase is one vendor of the tests that all vendors must pass. The simulated vendor validates every request
// against the vendor's API description and answers with the examples of it.
type vendorCase struct {
	provider    string
	settings    func(v *vendortest.Vendor) map[string]any
	tokenExtras map[string]any // extra members of token responses
	// of the example in the API description
	name, id, url string
	writtenID     string // id of the contact that is written
	// method and path prefix of the requests that create and change a call
	createRequest, updateRequest [2]string
	createdID                    string
	// the request that searches for the result of a lost answer, and its answer
	searchRequest [2]string
	searchAnswer  any
	// answer that reports an exceeded rate limit
	rateLimitAnswer *vendortest.Answer
}

var vendorCases = []vendorCase{
	{provider: "hubspot", settings: ownApp, name: "Ada Lovelace", id: "512", url: "https://app-eu1.hubspot.com/contacts/62515/record/0-1/512", writtenID: "901",
		createRequest: [2]string{"POST", "/crm/v3/objects/calls"}, updateRequest: [2]string{"PATCH", "/crm/v3/objects/calls/901"}, createdID: "901",
		searchRequest: [2]string{"POST", "/crm/v3/objects/calls/search"}, searchAnswer: map[string]any{"total": 1, "results": []any{map[string]any{"id": "901",
			"createdAt": "2026-01-02T03:04:05Z", "updatedAt": "2026-01-02T03:04:05Z", "properties": map[string]any{}}}},
		rateLimitAnswer: &vendortest.Answer{Status: 429, Body: map[string]any{"status": "error", "message": "You have reached your secondly limit.", "correlationId": "x",
			"category": "RATE_LIMITS", "policyName": "SECONDLY"}}},
	{provider: "pipedrive", settings: ownApp, name: "Ada Lovelace", id: "512", url: "/person/512", writtenID: "512",
		createRequest: [2]string{"POST", "/api/v2/activities"}, updateRequest: [2]string{"PATCH", "/api/v2/activities/901"}, createdID: "901",
		searchRequest: [2]string{"GET", "/api/v2/activities"}, searchAnswer: map[string]any{"success": true, "data": []any{map[string]any{"id": 7, "note": "another"}, map[string]any{"id": 901, "note": "x<br>call_1"}}},
		rateLimitAnswer: &vendortest.Answer{Status: 429, Header: map[string]string{"x-ratelimit-reset": "2"}, Body: map[string]any{"success": false, "error": "request over limit"}}},
	{provider: "salesforce", settings: ownApp, name: "Ada Lovelace", id: "003D000000QOzVUIA1", url: "/003D000000QOzVUIA1", writtenID: "003D000000QOzVUIA1",
		tokenExtras:   map[string]any{"instance_url": "https://acme.my.salesforce.com"},
		createRequest: [2]string{"POST", "/services/data/v61.0/sobjects/Task"}, updateRequest: [2]string{"PATCH", "/services/data/v61.0/sobjects/Task/00TD000000M7fyIMAR"},
		searchRequest: [2]string{"GET", "/services/data/v61.0/query"}, searchAnswer: map[string]any{"totalSize": 1, "done": true, "records": []any{map[string]any{"Id": "00TD000000M7fyIMAR"}}},
		createdID: "00TD000000M7fyIMAR", rateLimitAnswer: &vendortest.Answer{Status: 403, Body: []map[string]any{{"message": "TotalRequests Limit exceeded.",
			"errorCode": "REQUEST_LIMIT_EXCEEDED"}}}},
	{provider: "zendesk", settings: func(v *vendortest.Vendor) map[string]any { s := ownApp(v); s["subdomain"] = "acme"; return s },
		name: "Ada Lovelace", id: "512", url: "/agent/users/512", writtenID: "512",
		createRequest: [2]string{"POST", "/api/v2/tickets.json"}, updateRequest: [2]string{"PUT", "/api/v2/tickets/901.json"}, createdID: "901",
		searchRequest: [2]string{"GET", "/api/v2/tickets.json"}, searchAnswer: map[string]any{"tickets": []any{map[string]any{"id": 901}}, "count": 1},
		rateLimitAnswer: &vendortest.Answer{Status: 429, Header: map[string]string{"Retry-After": "93"}, Body: map[string]any{"error": "APIRateLimitExceeded"}}},
	{provider: "zoho", settings: ownApp, name: "Ada Lovelace", id: "Contacts/512", url: "/crm/tab/Contacts/512", writtenID: "Contacts/901",
		tokenExtras:   map[string]any{"api_domain": "https://www.zohoapis.eu"},
		createRequest: [2]string{"POST", "/crm/v8/Calls"}, updateRequest: [2]string{"PUT", "/crm/v8/Calls/901"}, createdID: "901",
		searchRequest: [2]string{"GET", "/crm/v8/Contacts/512/Calls"}, searchAnswer: map[string]any{"data": []any{map[string]any{"id": "901", "Description": "From\ncall_1"}}},
		rateLimitAnswer: &vendortest.Answer{Status: 429, Body: map[string]any{"code": "TOO_MANY_REQUESTS", "status": "error", "message": "try later", "details": map[string]any{}}}},
	{provider: "dynamics", settings: func(v *vendortest.Vendor) map[string]any {
		s := ownApp(v)
		s["resource"] = "https://acme.crm4.dynamics.com"
		return s
	},
		name: "Ada Lovelace", id: "00000000-0000-0000-0000-000000000512", url: "etn=contact&id=00000000-0000-0000-0000-000000000512", writtenID: "00000000-0000-0000-0000-000000000512",
		createRequest: [2]string{"PATCH", "/api/data/v9.2/phonecalls"}, updateRequest: [2]string{"PATCH", "/api/data/v9.2/phonecalls"},
		rateLimitAnswer: &vendortest.Answer{Status: 429, Header: map[string]string{"Retry-After": "23"}, Body: map[string]any{"error": map[string]any{"code": "0x80072322",
			"message": "Number of requests exceeded the limit of 6000 over time window of 300 seconds."}}}},
}

// forEachVendor runs a test for every vendor.
func forEachVendor(t *testing.T, claim func(t *testing.T, x vendorCase, h *fixture, v *vendortest.Vendor)) {
	t.Helper()
	t.Parallel()
	for _, x := range vendorCases {
		t.Run(x.provider, func(t *testing.T) {
			t.Parallel()
			h, v := newFixture(t, dbtest.SQLite(t)), vendortest.New(t, x.provider)
			v.SetExtras(x.tokenExtras, nil)
			claim(t, x, h, v)
		})
	}
}

func TestVendors_Lookup(t *testing.T) {
	forEachVendor(t, func(t *testing.T, x vendorCase, h *fixture, v *vendortest.Vendor) {
		h.connectVendor(x.provider, x.settings(v))
		for _, what := range []string{"phone=%2B442079460018", "email=ada@example.com"} {
			a := h.do("GET", "/contacts/lookup?timeout_ms=2000&"+what, nil).Want(200)
			if a.Text("name") != x.name || a.Text("external_id") != x.id || !strings.HasSuffix(a.Text("url"), x.url) || a.Text("company") != "Analytical" {
				t.Errorf("%s: %s", what, a.Bytes)
			}
		}
		h.lookup("+442079460099").Want(404) // the example is Ada again, but she has another number
	})
}

func TestVendors_ContactsAndNotes(t *testing.T) {
	forEachVendor(t, func(t *testing.T, x vendorCase, h *fixture, v *vendortest.Vendor) {
		h.connectVendor(x.provider, x.settings(v))
		c := h.do("POST", "/contacts", `{"first_name":"Ada","last_name":"O'Hara <x>","company":"Co","title":"Dr","phones":[{"number":"+447700900123","label":"mobile"},
			{"number":"+442079460018","primary":true}],"emails":[{"value":"ada@example.com"}]}`).Want(201)
		path := "/contacts/" + c.Text("id")
		a := h.waitFor("synced contact", path, func(a *optest.Answer) bool { return a.Text("external_refs.0.sync_status") != "pending" })
		if a.Text("external_refs.0.sync_status") != "synced" || a.Text("external_refs.0.external_id") != x.writtenID {
			t.Fatalf("written %s", a.Bytes)
		}
		before := len(v.Requests())
		h.do("PATCH", path, `{"title":"Countess"}`).Want(200)
		h.waitFor("the change", "/crm/sync-jobs", func(a *optest.Answer) bool { return a.Text("data.0.status") == "synced" && len(v.Requests()) > before })
		h.do("POST", path+"/notes", `{"body":"Called \"twice\" & was <glad>."}`).Want(201)
		n := h.waitFor("the note", "/crm/sync-jobs", func(a *optest.Answer) bool {
			return a.Text("data.0.kind") == "note" && a.Text("data.0.status") != "pending"
		})
		if n.Text("data.0.status") != "synced" {
			t.Errorf("note %s", n.Bytes)
		}
	})
}

func TestVendors_CallUpdatedInPlace(t *testing.T) {
	forEachVendor(t, func(t *testing.T, x vendorCase, h *fixture, v *vendortest.Vendor) {
		h.connectVendor(x.provider, x.settings(v))
		h.endCall(true)
		a := h.waitFor("written call", "/crm/sync-jobs", func(a *optest.Answer) bool { return a.Text("data.0.status") != "pending" })
		if a.Text("data.0.status") != "synced" || x.createdID != "" && a.Text("data.0.external_id") != x.createdID || a.Text("data.0.external_id") == "" {
			t.Fatalf("written %s", a.Bytes)
		}
		changed := v.CountRequests(x.updateRequest[0], x.updateRequest[1])
		h.addTranscript("Wants a quote & <soon>.", "Caller: A quote, please.")
		h.waitFor("changed call", "/crm/sync-jobs", func(a *optest.Answer) bool {
			return a.Text("data.0.status") != "pending" && v.CountRequests(x.updateRequest[0], x.updateRequest[1]) > changed
		})
		made := 0
		all := v.Requests()
		for _, r := range all {
			if r.Method == x.createRequest[0] && r.Path == x.createRequest[1] {
				made++
			}
		}
		grown := slices.ContainsFunc(all, func(r vendortest.Request) bool {
			return r.Method == x.updateRequest[0] && strings.HasPrefix(r.Path, x.updateRequest[1]) && strings.Contains(r.Body, "Wants a quote") && strings.Contains(r.Body, "A quote, please")
		})
		if x.createRequest != x.updateRequest && made != 1 || !grown {
			t.Errorf("made %d times, then %v", made, all)
		}
	})
}

func TestVendors_RateLimit(t *testing.T) {
	forEachVendor(t, func(t *testing.T, x vendorCase, h *fixture, v *vendortest.Vendor) {
		h.connectVendor(x.provider, x.settings(v))
		v.Respond(func(vendortest.Request) *vendortest.Answer { return x.rateLimitAnswer })
		if a := h.lookup("+442079460088").Want(404); a.Text("sources.1.status") != "rate_limited" {
			t.Errorf("busy: %s", a.Bytes)
		}
		before := len(v.Requests())
		if a := h.lookup("+442079460089").Want(404); a.Text("sources.1.status") != "rate_limited" || len(v.Requests()) != before {
			t.Errorf("asked on: %s", a.Bytes)
		}
	})
}

func TestVendors_Errors(t *testing.T) {
	forEachVendor(t, func(t *testing.T, x vendorCase, h *fixture, v *vendortest.Vendor) {
		id := h.connectVendor(x.provider, x.settings(v))
		for i, a := range []vendortest.Answer{{Status: 503, Body: "down"}, {Status: 200, Body: "<html>"}, {Status: 302, Header: map[string]string{"Location": "http://10.0.0.1/"}},
			{Status: 400, Body: `{"message":"no such field"}`}} {
			v.Respond(func(vendortest.Request) *vendortest.Answer { return &a })
			got := h.do("POST", "/crm/connections/"+id+"/test", `{"phone":"+442079460018"}`).Want(200)
			if got.At("ok") != false || got.Text("error") == "" {
				t.Errorf("%d: %s", i, got.Bytes)
			}
		}
		stop := make(chan struct{})
		defer close(stop)
		h.do("PATCH", "/crm/connections/"+id, `{"timeout_ms":100}`).Want(200)
		v.Respond(func(vendortest.Request) *vendortest.Answer { <-stop; return nil })
		if a := h.lookup("+442079460088").Want(404); a.Text("sources.1.status") != "timeout" {
			t.Errorf("slow: %s", a.Bytes)
		}
	})
}

// A revoked token is renewed, and the request succeeds.
func TestVendors_RevokedTokenRenewed(t *testing.T) {
	forEachVendor(t, func(t *testing.T, x vendorCase, h *fixture, v *vendortest.Vendor) {
		id := h.connectVendor(x.provider, x.settings(v))
		v.RevokeTokens(false)
		if a := h.do("POST", "/crm/connections/"+id+"/test", `{"phone":"+442079460018"}`).Want(200); a.Text("sample.name") != x.name {
			t.Errorf("found %s", a.Bytes)
		}
		refused := 0
		for _, r := range v.Requests() {
			if r.Method != http.MethodGet || r.Header.Get("Authorization") != "" {
				refused++
			}
		}
		if refused < 2 {
			t.Errorf("no token was refused: %v", v.Requests())
		}
	})
}

// The vendor wrote a call and its answer was lost: the retry creates no second record if the vendor supports a search
// for the first.
func TestVendors_LostAnswerNoDuplicate(t *testing.T) {
	forEachVendor(t, func(t *testing.T, x vendorCase, h *fixture, v *vendortest.Vendor) {
		h.connectVendor(x.provider, x.settings(v))
		var made []string
		v.Respond(func(r vendortest.Request) *vendortest.Answer {
			h.mu.Lock()
			defer h.mu.Unlock()
			creates := r.Method == x.createRequest[0] && r.Path == x.createRequest[1] ||
				x.searchAnswer == nil && strings.HasPrefix(r.Path, x.createRequest[1])
			switch {
			case r.Method == x.searchRequest[0] && r.Path == x.searchRequest[1] && len(made) > 0:
				return &vendortest.Answer{Body: x.searchAnswer}
			case creates:
				if made = append(made, r.Path); len(made) == 1 {
					return &vendortest.Answer{Status: 500, Body: "gone"}
				}
			}
			return nil
		})
		h.endCall(false)
		a := h.waitFor("written call", "/crm/sync-jobs", func(a *optest.Answer) bool { return a.Text("data.0.status") != "pending" })
		if a.Text("data.0.status") != "synced" || a.At("data.0.attempts") != float64(2) || x.createdID != "" && a.Text("data.0.external_id") != x.createdID {
			t.Errorf("written %s", a.Bytes)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if x.searchAnswer != nil && len(made) != 1 || len(slices.Compact(made)) != 1 {
			t.Errorf("made %v", made)
		}
	})
}

// Vendors can be connected with credentials that need no consent.
func TestVendors_StaticCredentials(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		provider string
		settings map[string]any
		accepts  string
	}{
		{"hubspot", map[string]any{"token": "pat-1", "portal_id": "7"}, "Bearer pat-1"},
		{"pipedrive", map[string]any{"api_token": "abc", "company_domain": "acme"}, "abc"},
		{"zendesk", map[string]any{"email": "a@example.com", "api_token": "abc", "subdomain": "acme"}, "Basic YUBleGFtcGxlLmNvbS90b2tlbjphYmM="},
		{"salesforce", map[string]any{"client_credentials": true, "client_id": vendortest.Client, "client_secret": vendortest.Secret}, ""},
		{"dynamics", map[string]any{"client_credentials": true, "client_id": vendortest.Client, "client_secret": vendortest.Secret, "tenant": "acme.com",
			"resource": "https://acme.crm.dynamics.com"}, ""},
	} {
		t.Run(x.provider, func(t *testing.T) {
			t.Parallel()
			h, v := newFixture(t, dbtest.SQLite(t)), vendortest.New(t, x.provider)
			x.settings["api_url"] = v.URL
			if v.AcceptCredentials(x.accepts); x.accepts == "" {
				x.settings["login_url"] = v.URL
			}
			c := h.createVendor(x.provider, x.settings).Want(201)
			if c.Text("status") != "active" || c.At("authorize_url") != nil || strings.Contains(string(c.Bytes), "abc") || strings.Contains(string(c.Bytes), "pat-1") {
				t.Errorf("connected %s", c.Bytes)
			}
			if a := h.lookup("+442079460018").Want(200); a.Text("name") != "Ada Lovelace" {
				t.Errorf("found %s", a.Bytes)
			}
			v.AcceptCredentials("another")
			v.RevokeTokens(true)
			h.do("POST", "/crm/connections/"+c.Text("id")+"/test", nil).Want(200)
			if x.accepts == "" {
				return // the app requests another token
			}
			h.lookup("+442079460019").Want(404)
			if a := h.list(); a.Text("data.1.status") != "auth_required" {
				t.Errorf("the credential is taken back: %s", a.Bytes)
			}
		})
	}
}

// All Dynamics contacts are copied, page by page. Numbers are found in any spelling.
func TestDynamics_CopyPagesAndDelta(t *testing.T) {
	t.Parallel()
	h, v := newFixture(t, dbtest.SQLite(t)), vendortest.New(t, "dynamics")
	one := func(n int, phone string) map[string]any {
		return map[string]any{"contactid": fmt.Sprintf("00000000-0000-0000-0000-%012d", n), "fullname": fmt.Sprintf("Person %d", n), "telephone1": phone}
	}
	v.Respond(func(r vendortest.Request) *vendortest.Answer {
		q, _ := url.ParseQuery(r.Query)
		switch {
		case q.Get("$filter") != "":
			return &vendortest.Answer{Body: map[string]any{"value": []any{}}}
		case q.Get("$deltatoken") == "old":
			return &vendortest.Answer{Status: 410, Body: map[string]any{"error": map[string]any{"code": "0x80060891", "message": "the token is too old"}}}
		case q.Get("$deltatoken") != "":
			return &vendortest.Answer{Body: map[string]any{"value": []any{one(2, "+44 20 7946 0055"), map[string]any{"id": "00000000-0000-0000-0000-000000000001",
				"reason": "deleted", "@odata.context": v.URL + "/api/data/v9.2/$metadata#contacts/$deletedEntity"}}, "@odata.deltaLink": v.URL + "/api/data/v9.2/contacts?$deltatoken=old"}}
		case q.Get("$skiptoken") == "":
			return &vendortest.Answer{Body: map[string]any{"value": []any{one(1, "(020)7946/0018 ext. 4"), one(2, "0044 20 7946 0099")},
				"@odata.nextLink": v.URL + "/api/data/v9.2/contacts?$select=contactid&$skiptoken=2"}}
		}
		return &vendortest.Answer{Body: map[string]any{"value": []any{one(3, "020.7946.0077")}, "@odata.deltaLink": v.URL + "/api/data/v9.2/contacts?$deltatoken=1!x"}}
	})
	s := ownApp(v)
	s["resource"] = "https://acme.crm4.dynamics.com"
	id := h.connectVendor("dynamics", s)
	h.waitFor("three people", "/crm/connections", func(a *optest.Answer) bool { return a.At("data.1.entries") == float64(3) })
	for number, name := range map[string]string{"+442079460018": "Person 1", "+442079460099": "Person 2", "+442079460077": "Person 3"} {
		if a := h.lookup(number).Want(200); a.Text("name") != name {
			t.Errorf("%s is %s", number, a.Bytes)
		}
	}
	h.readAgain(id, 2)
	if a := h.lookup("+442079460055").Want(200); a.Text("name") != "Person 2" {
		t.Errorf("changed: %s", a.Bytes)
	}
	h.lookup("+442079460099").Want(404)
	h.lookup("+442079460018").Want(404)
	if a := h.list(); a.At("data.1.entries") != float64(2) {
		t.Errorf("after the change %s", a.Bytes)
	}
	h.readAgain(id, 3) // the token has expired meanwhile
	if a := h.lookup("+442079460018").Want(200); a.Text("name") != "Person 1" {
		t.Errorf("everything again: %s", a.Bytes)
	}
	h.do("POST", "/crm/connections", map[string]any{"provider": "dynamics", "name": "x", "settings": map[string]any{"resource": "https://dynamics.com.thief.example"}}).
		Refused("validation_failed", "settings.resource invalid_url", "settings.client_id required")
}

// Zoho sends the token server of the region with the redirect. Only a server of Zoho is accepted.
func TestZoho_AccountsServer(t *testing.T) {
	t.Parallel()
	h, v := newFixture(t, dbtest.SQLite(t)), vendortest.New(t, "zoho")
	v.SetExtras(nil, url.Values{"accounts-server": {"https://thief.example"}, "location": {"eu"}})
	h.connectVendor("zoho", ownApp(v)) // the code was sent to the configured server
	if n := len(v.TokenRequests()); n != 1 {
		t.Errorf("%d codes were exchanged", n)
	}
	v.Respond(func(r vendortest.Request) *vendortest.Answer {
		if strings.Contains(r.Path, "Contacts") {
			return &vendortest.Answer{Status: 204, Body: ""}
		}
		return nil
	})
	if a := h.lookup("+442079460018").Want(200); a.Text("external_id") != "Leads/512" {
		t.Errorf("found %s", a.Bytes)
	}
}

// HubSpot answers 409 with the id of the contact that has this address: that record is changed.
func TestHubSpot_ConflictUpdatesExisting(t *testing.T) {
	t.Parallel()
	h, v := newFixture(t, dbtest.SQLite(t)), vendortest.New(t, "hubspot")
	h.connectVendor("hubspot", ownApp(v))
	v.Respond(func(r vendortest.Request) *vendortest.Answer {
		switch {
		case strings.HasSuffix(r.Path, "/search"): // the search index lags behind
			return &vendortest.Answer{Body: map[string]any{"total": 0, "results": []any{}}}
		case r.Method == "POST" && r.Path == "/crm/v3/objects/contacts":
			return &vendortest.Answer{Status: 409, Body: map[string]any{"status": "error", "message": "Contact already exists. Existing ID: 44", "correlationId": "x", "category": "CONFLICT"}}
		}
		return nil
	})
	c := h.do("POST", "/contacts", `{"first_name":"Ada","emails":[{"value":"ada@example.com"}]}`).Want(201)
	h.waitFor("synced contact", "/contacts/"+c.Text("id"), func(a *optest.Answer) bool { return a.Text("external_refs.0.sync_status") == "synced" })
	if v.CountRequests("PATCH", "/crm/v3/objects/contacts/44") != 1 {
		t.Errorf("asked %v", v.Requests())
	}
}

// readAgain triggers a read of a list with a change notice, and waits for the number of entries.
func (h *fixture) readAgain(id string, entries int) {
	h.t.Helper()
	at := h.list().Text("data.1.notice_url")
	if known, err := h.Notice(context.Background(), h.org, id, at[strings.LastIndexByte(at, '/')+1:]); !known || err != nil {
		h.t.Fatalf("notice at %s: %v, %v", at, known, err)
	}
	h.waitFor("the change", "/crm/connections", func(a *optest.Answer) bool { return a.At("data.1.entries") == float64(entries) })
}
