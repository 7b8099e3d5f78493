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
type trial struct {
	provider string
	settings func(v *vendortest.Vendor) map[string]any
	tells    map[string]any // extra members of token responses
	// of the example in the API description
	name, id, url string
	wrote         string // id of the contact that is written
	// method and path prefix of the requests that create and change a call
	makes, changes [2]string
	makesID        string
	// the request that searches for the result of a lost answer, and its answer
	before [2]string
	lost   any
	// answer that reports an exceeded rate limit
	busy *vendortest.Answer
}

var trials = []trial{
	{provider: "hubspot", settings: own, name: "Ada Lovelace", id: "512", url: "https://app-eu1.hubspot.com/contacts/62515/record/0-1/512", wrote: "901",
		makes: [2]string{"POST", "/crm/v3/objects/calls"}, changes: [2]string{"PATCH", "/crm/v3/objects/calls/901"}, makesID: "901",
		before: [2]string{"POST", "/crm/v3/objects/calls/search"}, lost: map[string]any{"total": 1, "results": []any{map[string]any{"id": "901",
			"createdAt": "2026-01-02T03:04:05Z", "updatedAt": "2026-01-02T03:04:05Z", "properties": map[string]any{}}}},
		busy: &vendortest.Answer{Status: 429, Body: map[string]any{"status": "error", "message": "You have reached your secondly limit.", "correlationId": "x",
			"category": "RATE_LIMITS", "policyName": "SECONDLY"}}},
	{provider: "pipedrive", settings: own, name: "Ada Lovelace", id: "512", url: "/person/512", wrote: "512",
		makes: [2]string{"POST", "/api/v2/activities"}, changes: [2]string{"PATCH", "/api/v2/activities/901"}, makesID: "901",
		before: [2]string{"GET", "/api/v2/activities"}, lost: map[string]any{"success": true, "data": []any{map[string]any{"id": 7, "note": "another"}, map[string]any{"id": 901, "note": "x<br>call_1"}}},
		busy: &vendortest.Answer{Status: 429, Header: map[string]string{"x-ratelimit-reset": "2"}, Body: map[string]any{"success": false, "error": "request over limit"}}},
	{provider: "salesforce", settings: own, name: "Ada Lovelace", id: "003D000000QOzVUIA1", url: "/003D000000QOzVUIA1", wrote: "003D000000QOzVUIA1",
		tells: map[string]any{"instance_url": "https://acme.my.salesforce.com"},
		makes: [2]string{"POST", "/services/data/v61.0/sobjects/Task"}, changes: [2]string{"PATCH", "/services/data/v61.0/sobjects/Task/00TD000000M7fyIMAR"},
		before: [2]string{"GET", "/services/data/v61.0/query"}, lost: map[string]any{"totalSize": 1, "done": true, "records": []any{map[string]any{"Id": "00TD000000M7fyIMAR"}}},
		makesID: "00TD000000M7fyIMAR", busy: &vendortest.Answer{Status: 403, Body: []map[string]any{{"message": "TotalRequests Limit exceeded.",
			"errorCode": "REQUEST_LIMIT_EXCEEDED"}}}},
	{provider: "zendesk", settings: func(v *vendortest.Vendor) map[string]any { s := own(v); s["subdomain"] = "acme"; return s },
		name: "Ada Lovelace", id: "512", url: "/agent/users/512", wrote: "512",
		makes: [2]string{"POST", "/api/v2/tickets.json"}, changes: [2]string{"PUT", "/api/v2/tickets/901.json"}, makesID: "901",
		before: [2]string{"GET", "/api/v2/tickets.json"}, lost: map[string]any{"tickets": []any{map[string]any{"id": 901}}, "count": 1},
		busy: &vendortest.Answer{Status: 429, Header: map[string]string{"Retry-After": "93"}, Body: map[string]any{"error": "APIRateLimitExceeded"}}},
	{provider: "zoho", settings: own, name: "Ada Lovelace", id: "Contacts/512", url: "/crm/tab/Contacts/512", wrote: "Contacts/901",
		tells: map[string]any{"api_domain": "https://www.zohoapis.eu"},
		makes: [2]string{"POST", "/crm/v8/Calls"}, changes: [2]string{"PUT", "/crm/v8/Calls/901"}, makesID: "901",
		before: [2]string{"GET", "/crm/v8/Contacts/512/Calls"}, lost: map[string]any{"data": []any{map[string]any{"id": "901", "Description": "From\ncall_1"}}},
		busy: &vendortest.Answer{Status: 429, Body: map[string]any{"code": "TOO_MANY_REQUESTS", "status": "error", "message": "try later", "details": map[string]any{}}}},
	{provider: "dynamics", settings: func(v *vendortest.Vendor) map[string]any {
		s := own(v)
		s["resource"] = "https://acme.crm4.dynamics.com"
		return s
	},
		name: "Ada Lovelace", id: "00000000-0000-0000-0000-000000000512", url: "etn=contact&id=00000000-0000-0000-0000-000000000512", wrote: "00000000-0000-0000-0000-000000000512",
		makes: [2]string{"PATCH", "/api/data/v9.2/phonecalls"}, changes: [2]string{"PATCH", "/api/data/v9.2/phonecalls"},
		busy: &vendortest.Answer{Status: 429, Header: map[string]string{"Retry-After": "23"}, Body: map[string]any{"error": map[string]any{"code": "0x80072322",
			"message": "Number of requests exceeded the limit of 6000 over time window of 300 seconds."}}}},
}

// forEachVendor runs a test for every vendor.
func each(t *testing.T, claim func(t *testing.T, x trial, h *house, v *vendortest.Vendor)) {
	t.Helper()
	t.Parallel()
	for _, x := range trials {
		t.Run(x.provider, func(t *testing.T) {
			t.Parallel()
			h, v := build(t, dbtest.SQLite(t)), vendortest.New(t, x.provider)
			v.Tells(x.tells, nil)
			claim(t, x, h, v)
		})
	}
}

func TestEveryVendorTellsWhoCalls(t *testing.T) {
	each(t, func(t *testing.T, x trial, h *house, v *vendortest.Vendor) {
		h.agreed(x.provider, x.settings(v))
		for _, what := range []string{"phone=%2B442079460018", "email=ada@example.com"} {
			a := h.do("GET", "/contacts/lookup?timeout_ms=2000&"+what, nil).Want(200)
			if a.Text("name") != x.name || a.Text("external_id") != x.id || !strings.HasSuffix(a.Text("url"), x.url) || a.Text("company") != "Analytical" {
				t.Errorf("%s: %s", what, a.Bytes)
			}
		}
		h.lookup("+442079460099").Want(404) // the example is Ada again, but she has another number
	})
}

func TestEveryVendorTakesContactsAndNotes(t *testing.T) {
	each(t, func(t *testing.T, x trial, h *house, v *vendortest.Vendor) {
		h.agreed(x.provider, x.settings(v))
		c := h.do("POST", "/contacts", `{"first_name":"Ada","last_name":"O'Hara <x>","company":"Co","title":"Dr","phones":[{"number":"+447700900123","label":"mobile"},
			{"number":"+442079460018","primary":true}],"emails":[{"value":"ada@example.com"}]}`).Want(201)
		path := "/contacts/" + c.Text("id")
		a := h.until("synced contact", path, func(a *optest.Answer) bool { return a.Text("external_refs.0.sync_status") != "pending" })
		if a.Text("external_refs.0.sync_status") != "synced" || a.Text("external_refs.0.external_id") != x.wrote {
			t.Fatalf("written %s", a.Bytes)
		}
		before := len(v.Seen())
		h.do("PATCH", path, `{"title":"Countess"}`).Want(200)
		h.until("the change", "/crm/sync-jobs", func(a *optest.Answer) bool { return a.Text("data.0.status") == "synced" && len(v.Seen()) > before })
		h.do("POST", path+"/notes", `{"body":"Called \"twice\" & was <glad>."}`).Want(201)
		n := h.until("the note", "/crm/sync-jobs", func(a *optest.Answer) bool {
			return a.Text("data.0.kind") == "note" && a.Text("data.0.status") != "pending"
		})
		if n.Text("data.0.status") != "synced" {
			t.Errorf("note %s", n.Bytes)
		}
	})
}

func TestEveryVendorHasOneCallThatGrows(t *testing.T) {
	each(t, func(t *testing.T, x trial, h *house, v *vendortest.Vendor) {
		h.agreed(x.provider, x.settings(v))
		h.ended(true)
		a := h.until("written call", "/crm/sync-jobs", func(a *optest.Answer) bool { return a.Text("data.0.status") != "pending" })
		if a.Text("data.0.status") != "synced" || x.makesID != "" && a.Text("data.0.external_id") != x.makesID || a.Text("data.0.external_id") == "" {
			t.Fatalf("written %s", a.Bytes)
		}
		changed := v.Asked(x.changes[0], x.changes[1])
		h.grew("Wants a quote & <soon>.", "Caller: A quote, please.")
		h.until("changed call", "/crm/sync-jobs", func(a *optest.Answer) bool {
			return a.Text("data.0.status") != "pending" && v.Asked(x.changes[0], x.changes[1]) > changed
		})
		made := 0
		all := v.Seen()
		for _, r := range all {
			if r.Method == x.makes[0] && r.Path == x.makes[1] {
				made++
			}
		}
		grown := slices.ContainsFunc(all, func(r vendortest.Request) bool {
			return r.Method == x.changes[0] && strings.HasPrefix(r.Path, x.changes[1]) && strings.Contains(r.Body, "Wants a quote") && strings.Contains(r.Body, "A quote, please")
		})
		if x.makes != x.changes && made != 1 || !grown {
			t.Errorf("made %d times, then %v", made, all)
		}
	})
}

func TestEveryVendorIsLeftAloneWhenItWantsToBe(t *testing.T) {
	each(t, func(t *testing.T, x trial, h *house, v *vendortest.Vendor) {
		h.agreed(x.provider, x.settings(v))
		v.Says(func(vendortest.Request) *vendortest.Answer { return x.busy })
		if a := h.lookup("+442079460088").Want(404); a.Text("sources.1.status") != "rate_limited" {
			t.Errorf("busy: %s", a.Bytes)
		}
		before := len(v.Seen())
		if a := h.lookup("+442079460089").Want(404); a.Text("sources.1.status") != "rate_limited" || len(v.Seen()) != before {
			t.Errorf("asked on: %s", a.Bytes)
		}
	})
}

func TestEveryVendorMayFail(t *testing.T) {
	each(t, func(t *testing.T, x trial, h *house, v *vendortest.Vendor) {
		id := h.agreed(x.provider, x.settings(v))
		for i, a := range []vendortest.Answer{{Status: 503, Body: "down"}, {Status: 200, Body: "<html>"}, {Status: 302, Header: map[string]string{"Location": "http://10.0.0.1/"}},
			{Status: 400, Body: `{"message":"no such field"}`}} {
			v.Says(func(vendortest.Request) *vendortest.Answer { return &a })
			got := h.do("POST", "/crm/connections/"+id+"/test", `{"phone":"+442079460018"}`).Want(200)
			if got.At("ok") != false || got.Text("error") == "" {
				t.Errorf("%d: %s", i, got.Bytes)
			}
		}
		stop := make(chan struct{})
		defer close(stop)
		h.do("PATCH", "/crm/connections/"+id, `{"timeout_ms":100}`).Want(200)
		v.Says(func(vendortest.Request) *vendortest.Answer { <-stop; return nil })
		if a := h.lookup("+442079460088").Want(404); a.Text("sources.1.status") != "timeout" {
			t.Errorf("slow: %s", a.Bytes)
		}
	})
}

// A revoked token is renewed, and the request succeeds.
func TestEveryVendorTakesTokensBack(t *testing.T) {
	each(t, func(t *testing.T, x trial, h *house, v *vendortest.Vendor) {
		id := h.agreed(x.provider, x.settings(v))
		v.Forget(false)
		if a := h.do("POST", "/crm/connections/"+id+"/test", `{"phone":"+442079460018"}`).Want(200); a.Text("sample.name") != x.name {
			t.Errorf("found %s", a.Bytes)
		}
		refused := 0
		for _, r := range v.Seen() {
			if r.Method != http.MethodGet || r.Header.Get("Authorization") != "" {
				refused++
			}
		}
		if refused < 2 {
			t.Errorf("no token was refused: %v", v.Seen())
		}
	})
}

// The vendor wrote a call and its answer was lost: the retry creates no second record if the vendor supports a search
// for the first.
func TestEveryVendorHasACallOnceWhoseAnswerWasLost(t *testing.T) {
	each(t, func(t *testing.T, x trial, h *house, v *vendortest.Vendor) {
		h.agreed(x.provider, x.settings(v))
		var made []string
		v.Says(func(r vendortest.Request) *vendortest.Answer {
			h.mu.Lock()
			defer h.mu.Unlock()
			creates := r.Method == x.makes[0] && r.Path == x.makes[1] || x.lost == nil && strings.HasPrefix(r.Path, x.makes[1])
			switch {
			case r.Method == x.before[0] && r.Path == x.before[1] && len(made) > 0:
				return &vendortest.Answer{Body: x.lost}
			case creates:
				if made = append(made, r.Path); len(made) == 1 {
					return &vendortest.Answer{Status: 500, Body: "gone"}
				}
			}
			return nil
		})
		h.ended(false)
		a := h.until("written call", "/crm/sync-jobs", func(a *optest.Answer) bool { return a.Text("data.0.status") != "pending" })
		if a.Text("data.0.status") != "synced" || a.At("data.0.attempts") != float64(2) || x.makesID != "" && a.Text("data.0.external_id") != x.makesID {
			t.Errorf("written %s", a.Bytes)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if x.lost != nil && len(made) != 1 || len(slices.Compact(made)) != 1 {
			t.Errorf("made %v", made)
		}
	})
}

// Vendors can be connected with credentials that need no consent.
func TestVendorsAreConnectedWithPlainCredentials(t *testing.T) {
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
			h, v := build(t, dbtest.SQLite(t)), vendortest.New(t, x.provider)
			x.settings["api_url"] = v.URL
			if v.Accepts(x.accepts); x.accepts == "" {
				x.settings["login_url"] = v.URL
			}
			c := h.vendor(x.provider, x.settings).Want(201)
			if c.Text("status") != "active" || c.At("authorize_url") != nil || strings.Contains(string(c.Bytes), "abc") || strings.Contains(string(c.Bytes), "pat-1") {
				t.Errorf("connected %s", c.Bytes)
			}
			if a := h.lookup("+442079460018").Want(200); a.Text("name") != "Ada Lovelace" {
				t.Errorf("found %s", a.Bytes)
			}
			v.Accepts("another")
			v.Forget(true)
			h.do("POST", "/crm/connections/"+c.Text("id")+"/test", nil).Want(200)
			if x.accepts == "" {
				return // the app requests another token
			}
			h.lookup("+442079460019").Want(404)
			if a := h.shown(); a.Text("data.1.status") != "auth_required" {
				t.Errorf("the credential is taken back: %s", a.Bytes)
			}
		})
	}
}

// All Dynamics contacts are copied, page by page. Numbers are found in any spelling.
func TestDynamicsIsCopiedPageByPage(t *testing.T) {
	t.Parallel()
	h, v := build(t, dbtest.SQLite(t)), vendortest.New(t, "dynamics")
	one := func(n int, phone string) map[string]any {
		return map[string]any{"contactid": fmt.Sprintf("00000000-0000-0000-0000-%012d", n), "fullname": fmt.Sprintf("Person %d", n), "telephone1": phone}
	}
	v.Says(func(r vendortest.Request) *vendortest.Answer {
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
	s := own(v)
	s["resource"] = "https://acme.crm4.dynamics.com"
	id := h.agreed("dynamics", s)
	h.until("three people", "/crm/connections", func(a *optest.Answer) bool { return a.At("data.1.entries") == float64(3) })
	for number, name := range map[string]string{"+442079460018": "Person 1", "+442079460099": "Person 2", "+442079460077": "Person 3"} {
		if a := h.lookup(number).Want(200); a.Text("name") != name {
			t.Errorf("%s is %s", number, a.Bytes)
		}
	}
	h.again(id, 2)
	if a := h.lookup("+442079460055").Want(200); a.Text("name") != "Person 2" {
		t.Errorf("changed: %s", a.Bytes)
	}
	h.lookup("+442079460099").Want(404)
	h.lookup("+442079460018").Want(404)
	if a := h.shown(); a.At("data.1.entries") != float64(2) {
		t.Errorf("after the change %s", a.Bytes)
	}
	h.again(id, 3) // the token has expired meanwhile
	if a := h.lookup("+442079460018").Want(200); a.Text("name") != "Person 1" {
		t.Errorf("everything again: %s", a.Bytes)
	}
	h.do("POST", "/crm/connections", map[string]any{"provider": "dynamics", "name": "x", "settings": map[string]any{"resource": "https://dynamics.com.thief.example"}}).
		Refused("validation_failed", "settings.resource invalid_url", "settings.client_id required")
}

// Zoho sends the token server of the region with the redirect. Only a server of Zoho is accepted.
func TestZohoTellsWhereTokensAreGiven(t *testing.T) {
	t.Parallel()
	h, v := build(t, dbtest.SQLite(t)), vendortest.New(t, "zoho")
	v.Tells(nil, url.Values{"accounts-server": {"https://thief.example"}, "location": {"eu"}})
	h.agreed("zoho", own(v)) // the code was sent to the configured server
	if n := len(v.TokenRequests()); n != 1 {
		t.Errorf("%d codes were exchanged", n)
	}
	v.Says(func(r vendortest.Request) *vendortest.Answer {
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
func TestHubSpotsConflictIsTheRecordThatIsThere(t *testing.T) {
	t.Parallel()
	h, v := build(t, dbtest.SQLite(t)), vendortest.New(t, "hubspot")
	h.agreed("hubspot", own(v))
	v.Says(func(r vendortest.Request) *vendortest.Answer {
		switch {
		case strings.HasSuffix(r.Path, "/search"): // the search index lags behind
			return &vendortest.Answer{Body: map[string]any{"total": 0, "results": []any{}}}
		case r.Method == "POST" && r.Path == "/crm/v3/objects/contacts":
			return &vendortest.Answer{Status: 409, Body: map[string]any{"status": "error", "message": "Contact already exists. Existing ID: 44", "correlationId": "x", "category": "CONFLICT"}}
		}
		return nil
	})
	c := h.do("POST", "/contacts", `{"first_name":"Ada","emails":[{"value":"ada@example.com"}]}`).Want(201)
	h.until("synced contact", "/contacts/"+c.Text("id"), func(a *optest.Answer) bool { return a.Text("external_refs.0.sync_status") == "synced" })
	if v.Asked("PATCH", "/crm/v3/objects/contacts/44") != 1 {
		t.Errorf("asked %v", v.Seen())
	}
}

// readAgain triggers a read of a list with a change notice, and waits for the number of entries.
func (h *house) again(id string, entries int) {
	h.t.Helper()
	at := h.shown().Text("data.1.notice_url")
	if known, err := h.Notice(context.Background(), h.org, id, at[strings.LastIndexByte(at, '/')+1:]); !known || err != nil {
		h.t.Fatalf("notice at %s: %v, %v", at, known, err)
	}
	h.until("the change", "/crm/connections", func(a *optest.Answer) bool { return a.At("data.1.entries") == float64(entries) })
}
