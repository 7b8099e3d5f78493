package crm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm"
	"soniq/internal/customer/crm/adapter"
	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/blob"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
	"soniq/internal/telephony/call"
)

// fixture is the service under test with a simulated system to connect.
type fixture struct {
	*crm.Service
	t        *testing.T
	d        *db.DB
	org      string
	contacts *contact.Service
	server   *optest.Server
	person   access.Principal // who is signed in in the browser
	system   *httptest.Server
	config   crm.Config // of Service

	now         func() time.Time
	credentials crm.Credentials

	mu         sync.Mutex // guards the rest
	received   []request
	respond    func(r request) (int, string)
	call       call.Call // the only call
	transcript string
}

type request struct{ method, path, query, body, auth, key string }

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	h := &fixture{t: t, d: d, now: time.Now, credentials: allCredentials{}, respond: func(request) (int, string) { return 200, "[]" }}
	h.system = httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(h.system.Close)
	b := bus.New()
	orgs := org.New(d, b, time.Now)
	o, err := orgs.Create(context.Background(), "Acme", "GB")
	if err != nil {
		t.Fatal(err)
	}
	h.org = o.ID
	secrets, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	jobs := &job.Queue{Bus: b}
	outbox := &event.Outbox{DB: d, Bus: b}
	files, err := blob.OpenDir(t.TempDir(), blob.Alone{})
	if err != nil {
		t.Fatal(err)
	}
	h.contacts = contact.New(contact.Config{DB: d, Orgs: orgs, Outbox: outbox, Jobs: jobs, Files: files, Log: log,
		Sources: systems{h}, Systems: systems{h}, Calls: noCalls{}, Memory: noMemory{}})
	t.Cleanup(h.contacts.Close)
	h.config = crm.Config{DB: d, Bus: b, Jobs: jobs, Seal: secrets,
		Guard:    egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}),
		Contacts: h.contacts, Log: log, BaseURL: "https://voice.test", Apps: map[string]adapter.App{}, Credentials: currentCredentials{h},
		Browsers: browsers{h}, Subjects: subjects{h}, Clock: clock.Func(func() time.Time { return h.now() })}
	h.Service = crm.New(h.config)
	h.person = access.Principal{OrgID: h.org, UserID: "usr_1", KeyID: "ses_1", Scopes: []access.Scope{access.ContactsWrite}}
	h.contacts.Observe(h.Service)
	h.server = optest.New(t, d, append(h.Operations(), h.contacts.Operations()...)...)
	r := &job.Runner{DB: d, Queue: jobs, Name: crm.Queue, Node: "n", Log: log, Options: crm.Options()}
	h.RegisterJobs(r)
	if err := r.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop(context.Background()) })
	return h
}

func (h *fixture) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	x := request{r.Method, r.URL.Path, r.URL.RawQuery, string(body), r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key")}
	h.mu.Lock()
	h.received = append(h.received, x)
	answer := h.respond
	h.mu.Unlock()
	status, text := answer(x)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

func (h *fixture) setResponse(f func(r request) (int, string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.respond = f
}

// requests returns the requests that the system received.
func (h *fixture) requests() []request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]request{}, h.received...)
}

func (h *fixture) do(method, path string, body any, header ...string) *optest.Answer {
	h.t.Helper()
	return h.server.Do(optest.Admin(h.org), method, path, body, header...)
}

func (h *fixture) lookup(phone string, more ...string) *optest.Answer {
	h.t.Helper()
	return h.do("GET", "/contacts/lookup?timeout_ms=2000&phone="+url.QueryEscape(phone)+strings.Join(more, ""), nil)
}

// connect connects the system with templates.
func (h *fixture) connect(settings map[string]any, more map[string]any) *optest.Answer {
	h.t.Helper()
	text, _ := json.Marshal(settings)
	settings = map[string]any{}
	_ = json.Unmarshal([]byte(strings.ReplaceAll(string(text), "SYSTEM", h.system.URL)), &settings)
	body := map[string]any{"provider": "http", "name": "Desk CRM", "settings": settings}
	for k, v := range more {
		body[k] = v
	}
	return h.do("POST", "/crm/connections", body)
}

// waitFor repeats a GET until the answer matches, for at most 30 s.
func (h *fixture) waitFor(what string, path string, good func(*optest.Answer) bool) *optest.Answer {
	h.t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // polls a condition that publishes no event
		a := h.do("GET", path, nil).Want(200)
		if good(a) {
			return a
		}
		if time.Since(began) > 30*time.Second {
			h.t.Fatalf("no %s: %s", what, a.Bytes)
		}
	}
}

var lookupSettings = map[string]any{"lookup": map[string]any{"url": "SYSTEM/people?q={{phone}}", "formats": []string{"e164", "national"}, "results": "$.data"},
	"record_url": "https://crm.example/p/{{external_id}}", "auth": map[string]any{"type": "bearer", "token": "s3cret"}, "headers": map[string]any{"X-Tenant": "acme"}}

var fieldMap = map[string]any{"field_map": map[string]string{"id": "key", "name": "attributes.label", "company": "org.name", "phones": "phones[*].value"}}

func TestHTTP_LookupWithTemplates(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		c := h.connect(lookupSettings, fieldMap).Want(201)
		if c.Text("settings.auth.token") != "********" || c.Text("settings.headers.X-Tenant") != "********" || strings.Contains(string(c.Bytes), "s3cret") ||
			c.At("capabilities.lookup") != true || c.At("capabilities.notes") != false || c.Text("status") != "active" {
			t.Errorf("connected %s", c.Bytes)
		}
		h.setResponse(func(r request) (int, string) {
			if q, _ := url.ParseQuery(r.query); q.Get("q") == "020 7946 0018" {
				return 200, `{"data":[{"key":42,"attributes":{"label":"Ada"},"org":{"name":"Co"},"phones":[{"value":"(020) 7946-0018"}]}]}`
			}
			return 200, `{"data":[]}`
		})
		a := h.lookup("+442079460018").Want(200)
		if a.Text("name") != "Ada" || a.Text("company") != "Co" || a.Text("source") != "Desk CRM" || a.Text("external_id") != "42" ||
			a.Text("url") != "https://crm.example/p/42" || a.Text("match") != "national" {
			t.Errorf("got %s", a.Bytes)
		}
		all := h.requests()
		if len(all) != 2 || all[0].query != "q=%2B442079460018" || all[0].auth != "Bearer s3cret" {
			t.Errorf("asked %+v", all)
		}
		id := c.Text("id")
		u := h.do("PATCH", "/crm/connections/"+id, `{"settings":{"auth":{"token":"********"},"lookup":{"formats":["digits"]}},"priority":5}`).Want(200)
		if u.At("priority") != float64(5) || u.Text("settings.lookup.results") != "$.data" {
			t.Errorf("changed %s", u.Bytes)
		}
		h.lookup("+442079460018").Want(404)
		if last := h.requests()[2]; last.query != "q=442079460018" || last.auth != "Bearer s3cret" {
			t.Errorf("asked %+v", last)
		}
		h.do("PATCH", "/crm/connections/"+id, `{"status":"disabled"}`).Want(200)
		if n := h.lookup("+442079460018").Want(404); strings.Contains(string(n.Bytes), "Desk") {
			t.Errorf("switched off, it is asked: %s", n.Bytes)
		}
		h.do("DELETE", "/crm/connections/"+id, nil).Want(204)
		if l := h.do("GET", "/crm/connections", nil).Want(200); len(l.At("data").([]any)) != 1 || l.Text("data.0.provider") != "internal" {
			t.Errorf("left %s", l.Bytes)
		}
	})
}

func TestLookup_CircuitBreaker(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id := h.connect(lookupSettings, nil).Want(201).Text("id")
	h.setResponse(func(request) (int, string) { return 503, "" })
	for i := range 5 {
		if a := h.lookup(fmt.Sprintf("+44207946001%d", i)).Want(404); a.Text("sources.1.status") != "error" {
			t.Fatalf("%d: %s", i, a.Bytes)
		}
	}
	if a := h.lookup("+442079460019").Want(404); a.Text("sources.1.status") != "circuit_open" || len(h.requests()) != 5 {
		t.Errorf("asked %d times: %s", len(h.requests()), a.Bytes)
	}
	c := h.do("GET", "/crm/connections", nil).Want(200)
	if c.Text("data.1.status") != "degraded" || c.At("data.1.error_rate") != float64(100) || c.Text("data.1.last_error") != "the system answered 503" {
		t.Errorf("shown %s", c.Bytes)
	}
	h.do("PATCH", "/crm/connections/"+id, `{"timeout_ms":1000}`).Want(200) // a change closes the breaker
	h.setResponse(func(request) (int, string) { return 401, "" })
	h.lookup("+442079460018").Want(404)
	if c := h.do("GET", "/crm/connections", nil).Want(200); c.Text("data.1.status") != "auth_required" {
		t.Errorf("shown %s", c.Bytes)
	}
	h.do("PATCH", "/crm/connections/"+id, `{"timeout_ms":1001}`).Want(200)
	h.setResponse(func(request) (int, string) { return 429, "" })
	h.lookup("+442079460028").Want(404)
	before := len(h.requests())
	if a := h.lookup("+442079460029").Want(404); a.Text("sources.1.status") != "rate_limited" || len(h.requests()) != before {
		t.Errorf("a busy system is asked on: %s", a.Bytes)
	}
	if a := h.do("POST", "/crm/connections/"+id+"/test", `{"phone":"+442079460018"}`).Want(200); a.At("ok") != false || a.Text("error") == "" {
		t.Errorf("tested %s", a.Bytes)
	}
}

func TestCreate_AllViolationsListed(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.do("POST", "/crm/connections", `{"provider":"sugar","name":"x"}`).Refused("validation_failed", "provider not_available")
	h.do("POST", "/crm/connections", `{"provider":"internal","name":"x"}`).Want(409).Refused("already_exists")
	h.do("POST", "/crm/connections", `{"provider":"http","name":" ","settings":{}}`).Refused("validation_failed", "name invalid_length", "settings required")
	h.do("POST", "/crm/connections", `{"provider":"http","name":"x","settings":{"look":1}}`).Refused("validation_failed", "settings unknown_field")
	h.do("POST", "/crm/connections", `{"provider":"http","name":"x","settings":{"Lookup":{"url":"https://a.example/"}}}`).Refused("validation_failed", "settings unknown_field")
	h.connect(map[string]any{"lookup": map[string]any{"url": "https://{{phone}}.example/", "formats": []string{"x"}, "results": "a[b"}, "auth": map[string]any{"type": "bearer"},
		"note": map[string]any{"url": "http://10.0.0.1/", "body": map[string]any{"x": "{{nonsense}}"}}}, map[string]any{"field_map": map[string]string{"shoe": "x"}}).
		Refused("validation_failed", "settings.lookup.url invalid_url", "settings.lookup.formats invalid_value", "settings.lookup.results invalid_path",
			"settings.auth required", "settings.note.url invalid_url", "settings.note.body unknown_placeholder", "field_map.shoe unknown_field")
	for _, bad := range []string{"javascript:alert('{{external_id}}')", "data:text/html,x", "//crm.example/", "https://{{external_id}}/", "https://crm.example{{external_id}}"} {
		h.connect(map[string]any{"lookup": lookupSettings["lookup"], "record_url": bad}, nil).Refused("validation_failed", "settings.record_url invalid_url")
	}
	h.do("DELETE", "/crm/connections/"+contact.InternalID, nil).Want(409)
	if l := h.do("GET", "/crm/connections?include_total=true", nil).Want(200); l.At("total") != float64(1) {
		t.Errorf("kept %s", l.Bytes)
	}
	p := h.do("GET", "/crm/providers", nil).Want(200)
	if strings.Contains(string(p.Bytes), "sugar") || p.Text("data.1.provider") != "http" || p.At("data.1.settings_schema.properties.lookup.properties.url") == nil {
		t.Errorf("providers %s", p.Bytes)
	}
}

func TestSync_NotesAndContacts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		down := true
		h.setResponse(func(r request) (int, string) {
			switch {
			case r.path == "/notes" && down:
				return 400, ""
			case r.path == "/notes":
				return 201, `{"id":"n-1"}`
			}
			return 201, `{"person":{"id":77}}`
		})
		c := h.connect(map[string]any{"upsert": map[string]any{"url": "SYSTEM/people", "body": map[string]any{"n": "{{first_name}} {{last_name}}", "tel": "{{phone}}"}, "id": "person.id"},
			"note": map[string]any{"url": "SYSTEM/notes", "body": map[string]any{"person": "{{external_id}}", "text": "{{author}}: {{note}}"}}}, nil).Want(201)
		a := h.do("POST", "/contacts", `{"first_name":"Ada","last_name":"\"L\"","phones":[{"number":"020 7946 0018"}]}`).Want(201)
		if a.Text("external_refs.0.sync_status") != "pending" || a.Text("external_refs.0.connection_id") != c.Text("id") {
			t.Errorf("made %s", a.Bytes)
		}
		path := "/contacts/" + a.Text("id")
		h.waitFor("synced contact", path, func(a *optest.Answer) bool { return a.Text("external_refs.0.sync_status") == "synced" })
		if r := h.requests()[0]; r.body != `{"n":"Ada \"L\"","tel":"+442079460018"}` || r.key == "" {
			t.Errorf("sent %+v", r)
		}
		n := h.do("POST", path+"/notes", `{"body":"Called \"twice\"."}`).Want(201)
		if n.Text("crm_sync.0.status") != "pending" || n.Text("crm_sync.0.provider") != "http" {
			t.Errorf("note %s", n.Bytes)
		}
		h.do("POST", path+"/notes", `{"body":"Private.","crm_sync":false}`).Want(201)
		s := h.waitFor("failed note", "/crm/sync-jobs?status=failed", func(a *optest.Answer) bool { return len(a.At("data").([]any)) == 1 })
		if s.Text("data.0.kind") != "note" || s.Text("data.0.error") != "the system refuses what it was given: it answered 400" {
			t.Errorf("failed %s", s.Bytes)
		}
		h.mu.Lock()
		down = false
		h.mu.Unlock()
		h.do("POST", "/crm/sync-jobs/"+s.Text("data.0.id")+"/retry", nil).Want(200)
		done := h.waitFor("synced note", "/crm/sync-jobs?status=synced", func(a *optest.Answer) bool { return len(a.At("data").([]any)) == 2 })
		if done.Text("data.0.external_id") != "n-1" {
			t.Errorf("synced %s", done.Bytes)
		}
		all := h.requests()
		if last := all[len(all)-1]; last.body != `{"person":"77","text":"test: Called \"twice\"."}` {
			t.Errorf("sent %+v", last)
		}
		h.do("POST", "/crm/sync-jobs/"+s.Text("data.0.id")+"/retry", nil).Want(409).Refused("invalid_state")
		h.do("PATCH", path, `{"first_name":"Augusta","crm_sync":false}`).Want(200)
		h.do("PATCH", path, `{"title":"Countess"}`).Want(200)
		h.waitFor("the change", path, func(a *optest.Answer) bool { return a.Text("external_refs.0.sync_status") == "synced" })
		if a := h.do("GET", path, nil); a.Text("external_refs.0.external_id") != "77" {
			t.Errorf("after the change %s", a.Bytes)
		}
	})
}

func TestLists_CopiedAndUpdated(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		list := "id,name,company,phone,email\n1,Ada,Co,020 7946 0018,ada@example.com\n2,Bert,,+442079460099,\n"
		h.setResponse(func(r request) (int, string) {
			if r.method == "REPORT" {
				return 207, `<?xml version="1.0"?><D:multistatus xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav"><D:response><D:href>/c/1.vcf</D:href><D:propstat><D:prop>` +
					"<C:address-data>BEGIN:VCARD\nVERSION:3.0\nFN:Carla Card\nTEL:+44 7700 900123\nEND:VCARD\n</C:address-data></D:prop></D:propstat></D:response></D:multistatus>"
			}
			return 200, list
		})
		c := h.do("POST", "/crm/connections", map[string]any{"provider": "csv", "name": "Sheet", "settings": map[string]any{"url": h.system.URL + "/list.csv"}}).Want(201)
		h.do("POST", "/crm/connections", map[string]any{"provider": "carddav", "name": "Book", "settings": map[string]any{"url": h.system.URL + "/book/"}}).Want(201)
		h.waitFor("entries", "/crm/connections", func(a *optest.Answer) bool {
			n := 0
			for i := range len(a.At("data").([]any)) {
				x, _ := a.At(fmt.Sprintf("data.%d.entries", i)).(float64)
				n += int(x)
			}
			return n == 3
		})
		if a := h.lookup("+442079460018").Want(200); a.Text("name") != "Ada" || a.Text("source") != "Sheet" || a.Text("external_id") != "1" || a.Text("match") != "national" {
			t.Errorf("got %s", a.Bytes)
		}
		if a := h.lookup("+447700900123").Want(200); a.Text("name") != "Carla Card" || a.Text("source") != "Book" {
			t.Errorf("got %s", a.Bytes)
		}
		h.mu.Lock()
		list = "id,name,phone\n2,Bertram,+442079460099\n"
		h.mu.Unlock()
		h.do("PATCH", "/crm/connections/"+c.Text("id"), `{"name":"Table"}`).Want(200) // reads it again
		//nolint:forbidigo // polls a condition that publishes no event
		for began := time.Now(); h.lookup("+442079460018").Status != 404; time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > 30*time.Second {
				t.Fatal("who is gone from the list is still found")
			}
		}
		if a := h.lookup("+442079460099").Want(200); a.Text("name") != "Bertram" || a.Text("source") != "Table" {
			t.Errorf("got %s", a.Bytes)
		}
	})
}
