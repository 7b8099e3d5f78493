package contact_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/identity/org"
	"soniq/internal/identity/user/usertest"
	"soniq/internal/platform/access"
	"soniq/internal/platform/blob"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
)

// fixture is the service under test.
type fixture struct {
	*contact.Service
	t      *testing.T
	d      *db.DB
	bus    *bus.Bus
	orgs   *org.Service
	org    string
	server *optest.Server
	fakes  *fakes
	jobs   *job.Queue
}

// newFixture returns the service. Each of changes changes its configuration.
func newFixture(t *testing.T, d *db.DB, changes ...func(*contact.Config)) *fixture {
	t.Helper()
	b := bus.New()
	h := &fixture{t: t, d: d, bus: b, orgs: org.New(d, b, time.Now)}
	o, err := h.orgs.Create(context.Background(), "Acme", "GB")
	if err != nil {
		t.Fatal(err)
	}
	h.org = o.ID
	files, err := blob.OpenDir(t.TempDir(), blob.Alone{})
	if err != nil {
		t.Fatal(err)
	}
	outbox := &event.Outbox{DB: d, Bus: b}
	users := usertest.New(d, h.orgs, outbox, b, time.Now)
	h.fakes = newFakes()
	h.jobs = &job.Queue{Bus: b}
	c := contact.Config{DB: d, Orgs: h.orgs, Outbox: outbox, Jobs: h.jobs, Files: files,
		Log: slog.New(slog.NewTextHandler(testLog{t}, nil)), Timer: h.fakes, Sources: h.fakes, Systems: h.fakes, Calls: h.fakes,
		Memory: h.fakes, Timeline: []contact.TimelineSource{h.fakes}}
	for _, change := range changes {
		change(&c)
	}
	h.Service = contact.New(c)
	t.Cleanup(h.Close)
	h.server = optest.New(t, d, append(h.Operations(), users.Operations()...)...)
	return h
}

type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) { l.t.Log(string(b)); return len(b), nil }

func (h *fixture) do(method, path string, body any, header ...string) *optest.Answer {
	h.t.Helper()
	return h.server.Do(optest.Admin(h.org), method, path, body, header...)
}

// lookup looks up a number.
func (h *fixture) lookup(phone string, more ...string) *optest.Answer {
	h.t.Helper()
	return h.do("GET", "/contacts/lookup?phone="+url.QueryEscape(phone)+strings.Join(more, ""), nil)
}

func TestContact_CreateUpdateDelete(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		a := h.do("POST", "/contacts", `{"first_name":" Ada ","last_name":"Lovelace","company":"Analytical","phones":[{"number":"(020) 7946 0018","label":"work"},
			{"number":"+44 7700 900123","primary":true}],"emails":[{"value":"Ada@Example.com"}],"tags":["Math","first","math"],"vip":true,"custom":{"tier":"gold"}}`).Want(201)
		id := a.Text("id")
		if a.Text("name") != "Ada Lovelace" || a.Text("phones.0.number") != "+442079460018" || a.Text("phones.0.written") != "(020) 7946 0018" ||
			a.At("phones.1.primary") != true || a.At("emails.0.primary") != true || fmt.Sprint(a.At("tags")) != "[first math]" || a.Text("source") != "api" ||
			a.Text("custom.tier") != "gold" || a.At("owner_user_id") != nil || !strings.HasPrefix(id, "con_") {
			t.Errorf("got %s", a.Bytes)
		}
		if got := h.do("GET", "/contacts/"+id, nil).Want(200); got.Header.Get("ETag") != a.Header.Get("ETag") || got.Text("company") != "Analytical" {
			t.Errorf("got %s", got.Bytes)
		}
		h.do("PATCH", "/contacts/"+id, `{"company":"x"}`, `If-Match: "0"`).Want(412)
		c := h.do("PATCH", "/contacts/"+id, `{"company":null,"phones":[{"number":"+447700900123"}],"custom":{"tier":null,"city":"London"},"do_not_call":true}`).Want(200)
		if c.Text("company") != "" || c.At("phones.1") != nil || c.Text("custom.city") != "London" || c.At("custom.tier") != nil || c.At("do_not_call") != true ||
			c.Text("last_name") != "Lovelace" {
			t.Errorf("changed %s", c.Bytes)
		}
		h.lookup("+442079460018").Want(404).Refused("contact_not_found")
		h.lookup("+447700900123").Want(200)
		h.do("DELETE", "/contacts/"+id, nil).Want(204)
		h.do("GET", "/contacts/"+id, nil).Want(404)
		h.lookup("+447700900123").Want(404).Refused("contact_not_found")
	})
}

func TestContact_AllViolationsListed(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.do("POST", "/contacts", `{}`).Refused("validation_failed", "first_name required")
	h.do("POST", "/contacts", `{"phones":[{"number":"7946 0018"},{"number":"+447700900123","extension":"x"}],"emails":[{"value":"ada"}],"tags":["a\"b"],
		"owner_user_id":"usr_none","connection_ids":["crm_none"]}`).Refused("validation_failed", "phones.0.number invalid_e164", "phones.1.extension invalid_value",
		"emails.0.value invalid_email", "tags invalid_value", "owner_user_id not_found", "connection_ids not_found")
	h.do("POST", "/contacts", `{"first_name":"A","fone":"1"}`).Want(400).Refused("unknown_field")
	if a := h.do("GET", "/contacts?include_total=true", nil).Want(200); a.At("total") != float64(0) {
		t.Errorf("something was kept: %s", a.Bytes)
	}
}

func TestList_Filters(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		for i, name := range []string{"Zoe", "adam", "Bert", "Carl"} {
			h.do("POST", "/contacts", fmt.Sprintf(`{"first_name":%q,"company":"Firm %d","phones":[{"number":"+4420794600%02d"}],"emails":[{"value":"%s@example.com"}],"tags":["n%d","all_"]}`,
				name, i%2, i, name, i)).Want(201)
		}
		for query, want := range map[string]string{
			"": "adam Bert Carl Zoe", "q=ERT": "Bert", "q=%25": "", "q=94600": "adam Bert Carl Zoe", "phone=020+7946+0003": "Carl", "phone=%2B442079460000": "Zoe",
			"email=ADAM%40example.com": "adam", "company=firm+1": "adam Carl", "tag=n2": "Bert", "tag=n2,n3": "", "tag=all%25": "", "tag=all_": "adam Bert Carl Zoe",
			"source=import": "", "updated_since=2999-01-01": "", "updated_since=2020-01-01&tag=n0": "Zoe", "sort=-last_contacted_at&q=Carl": "Carl",
		} {
			if got := h.namesOf("/contacts?limit=2", query); got != want {
				t.Errorf("%q lists %q, want %q", query, got, want)
			}
		}
		h.do("GET", "/contacts?updated_since=x", nil).Want(400).Refused("invalid_query")
		err := d.Tx(context.Background(), func(tx db.Querier) error {
			return h.UpdateLastContacted(context.Background(), tx, h.org, "+442079460002", db.At(time.Now()))
		})
		if got := h.namesOf("/contacts?limit=1", "sort=-last_contacted_at"); err != nil || !strings.HasPrefix(got, "Bert ") || len(strings.Fields(got)) != 4 {
			t.Errorf("by last contact: %q %v", got, err)
		}
	})
}

// namesOf reads all pages of a list.
func (h *fixture) namesOf(path, query string) string {
	h.t.Helper()
	var all []string
	for cursor := ""; ; {
		a := h.do("GET", path+"&"+query+cursor, nil).Want(200)
		for i := range len(a.At("data").([]any)) {
			all = append(all, a.Text(fmt.Sprintf("data.%d.first_name", i)))
		}
		if a.At("has_more") != true {
			return strings.Join(all, " ")
		}
		cursor = "&cursor=" + a.Text("next_cursor")
	}
}

// TestList_PagesOfEqualTimes proves that the pages of a list have every contact once, in the order of the list, although only two names and
// two times occur. The times differ by a microsecond.
//
// https://github.com/activepieces/activepieces/pull/14323
// https://github.com/activepieces/activepieces/pull/12219
// https://github.com/openkruise/agents/issues/581
func TestList_PagesOfEqualTimes(t *testing.T) {
	t.Parallel()
	const people = 60
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.runJobs()
		file := "first_name,phone\n"
		for i := range people {
			file += fmt.Sprintf("%s,+4420794600%02d\n", [...]string{"Ada", "Bert"}[i%2], i)
		}
		if a := h.waitImport(h.upload(file).Want(202).Text("id")); a.At("created") != float64(people) {
			t.Fatalf("imported %s", a.Bytes)
		}
		for name, micros := range map[string]int64{"Ada": 1763000000123456, "Bert": 1763000000123457} {
			err := d.Tx(t.Context(), func(tx db.Querier) error {
				_, err := tx.Exec(t.Context(), `UPDATE contacts SET created_at = $3, updated_at = $3, last_contacted_at = $3
					WHERE org_id = $1 AND first_name = $2`, h.org, name, db.At(time.UnixMicro(micros)))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for sort, first := range map[string]string{"name": "Ada", "-last_contacted_at": "Bert"} {
			var names []string
			seen := map[string]bool{}
			for path := "/contacts?limit=7&include_total=true&sort=" + sort; path != ""; {
				a := h.do("GET", path, nil).Want(200)
				for i := range a.At("data").([]any) {
					at := fmt.Sprintf("data.%d.", i)
					names, seen[a.Text(at+"id")] = append(names, a.Text(at+"first_name")), true
				}
				if path = ""; a.At("has_more") == true {
					path = "/contacts?limit=7&include_total=true&sort=" + sort + "&cursor=" + a.Text("next_cursor")
				}
				if a.At("total") != float64(people) || len(names) > people {
					t.Fatalf("%s: %d contacts listed, the answer is %s", sort, len(names), a.Bytes)
				}
			}
			if half := people / 2; len(names) != people || len(seen) != people || names[0] != first || names[half-1] != first ||
				names[half] == first {
				t.Errorf("%s: %d contacts, %d of them different, named %q", sort, len(names), len(seen), names)
			}
		}
	})
}

func TestMerge_KeepsAllData(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		var merges mergeRecorder
		h.Observe(&merges)
		one := h.do("POST", "/contacts", `{"first_name":"Ada","phones":[{"number":"+442079460018"}],"tags":["a"],"custom":{"x":"1","y":"1"}}`).Want(201).Text("id")
		two := h.do("POST", "/contacts", `{"first_name":"A.","last_name":"Lovelace","company":"Co","phones":[{"number":"020 7946 0018"},{"number":"+447700900123"}],
			"emails":[{"value":"ada@example.com"}],"tags":["b"],"vip":true,"custom":{"y":"2","z":"2"}}`).Want(201).Text("id")
		h.do("POST", "/contacts/"+two+"/notes", `{"body":"Hers."}`).Want(201)
		h.do("POST", "/contacts/"+one+"/merge", `{"from_id":"`+one+`"}`).Refused("validation_failed", "from_id ambiguous")
		h.do("POST", "/contacts/"+one+"/merge", `{"from_id":"con_none"}`).Refused("validation_failed", "from_id not_found")
		a := h.do("POST", "/contacts/"+one+"/merge", `{"from_id":"`+two+`"}`).Want(200)
		if a.Text("name") != "Ada Lovelace" || a.Text("company") != "Co" || a.At("phones.2") != nil || a.Text("phones.1.number") != "+447700900123" ||
			a.Text("emails.0.value") != "ada@example.com" || fmt.Sprint(a.At("tags")) != "[a b]" || a.At("vip") != true || a.At("notes_count") != float64(1) ||
			fmt.Sprint(a.At("custom")) != "map[x:1 y:1 z:2]" || merges.last != two+" "+one {
			t.Errorf("merged %s; told %q", a.Bytes, merges.last)
		}
		h.do("GET", "/contacts/"+two, nil).Want(404)
		if l := h.lookup("+447700900123").Want(200); l.Text("contact_id") != one {
			t.Errorf("lookup %s", l.Bytes)
		}
		if line := h.do("GET", "/contacts/"+one+"/timeline", nil).Want(200); line.Text("data.0.text") != "Hers." || line.Text("data.0.kind") != "note" {
			t.Errorf("timeline %s", line.Bytes)
		}
	})
}

func TestTimeline_OneOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := time.Now
		h := newFixture(t, d, func(c *contact.Config) { c.Clock = clock.Func(func() time.Time { return now() }) })
		id := h.do("POST", "/contacts", `{"first_name":"Ada","phones":[{"number":"+442079460018"}]}`).Want(201).Text("id")
		base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		h.fakes.timeline = func(q contact.TimelineQuery) (all []contact.Item) {
			if q.Numbers[0] != "+442079460018" || !q.Wants("message") {
				return nil
			}
			for i := 9; i >= 0 && len(all) <= q.Limit; i-- {
				at := db.At(base.Add(time.Duration(i) * time.Hour))
				if q.Before.IsZero() || at.Before(q.Before.Time) {
					all = append(all, contact.Item{Kind: "message", ID: fmt.Sprintf("sms_%d", i), At: at})
				}
			}
			return all
		}
		for i := range 3 {
			now = func() time.Time { return base.Add(time.Duration(3*i)*time.Hour + time.Minute) }
			h.do("POST", "/contacts/"+id+"/notes", fmt.Sprintf(`{"body":"note %d"}`, i)).Want(201)
		}
		var got []string
		for cursor := ""; ; {
			a := h.do("GET", "/contacts/"+id+"/timeline?limit=3"+cursor, nil).Want(200)
			for i := range len(a.At("data").([]any)) {
				got = append(got, a.Text(fmt.Sprintf("data.%d.kind", i))[:1]+a.Text(fmt.Sprintf("data.%d.at", i))[11:13])
			}
			if a.At("has_more") != true {
				break
			}
			cursor = "&cursor=" + a.Text("next_cursor")
		}
		if want := "m09 m08 m07 n06 m06 m05 m04 n03 m03 m02 m01 n00 m00"; strings.Join(got, " ") != want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
		}
		if a := h.do("GET", "/contacts/"+id+"/timeline?kinds=note&since=2026-01-01T02:00:00Z", nil).Want(200); len(a.At("data").([]any)) != 2 {
			t.Errorf("notes only: %s", a.Bytes)
		}
	})
}

func TestDelete_EraseNeedsAdmin(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id := h.do("POST", "/contacts", `{"first_name":"Ada","phones":[{"number":"+442079460018"}]}`).Want(201).Text("id")
	p := optest.Admin(h.org)
	p.Scopes = []access.Scope{access.ContactsWrite}
	h.server.Do(p, "DELETE", "/contacts/"+id+"?erase=true", nil).Want(403).Refused("insufficient_scope")
	h.do("GET", "/contacts/"+id, nil).Want(200)
	h.do("DELETE", "/contacts/"+id+"?erase=true", nil).Want(204)
	if erased := h.fakes.erased; len(erased) != 1 || erased[0] != "+442079460018" {
		t.Errorf("erased %v", erased)
	}
}

func TestContact_OtherOrganisationNotFound(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.do("POST", "/contacts", `{"first_name":"Ada","phones":[{"number":"+442079460018"}],"emails":[{"value":"ada@example.com"}]}`).Want(201).Text("id")
		o, err := h.orgs.Create(context.Background(), "Other", "GB")
		if err != nil {
			t.Fatal(err)
		}
		p := optest.Admin(o.ID)
		own := h.server.Do(p, "POST", "/contacts", `{"first_name":"Own"}`).Want(201).Text("id")
		for _, r := range []string{"GET /contacts/" + id, "PATCH /contacts/" + id, "DELETE /contacts/" + id, "POST /contacts/" + id + "/notes",
			"GET /contacts/" + id + "/timeline", "POST /contacts/" + id + "/merge"} {
			method, path, _ := strings.Cut(r, " ")
			body := map[string]any{"PATCH": `{}`, "POST": `{"body":"x"}`}[method]
			if strings.HasSuffix(path, "merge") {
				body = `{"from_id":"` + own + `"}`
			}
			h.server.Do(p, method, path, body).Want(404).Refused("not_found")
		}
		h.server.Do(p, "POST", "/contacts/"+own+"/merge", `{"from_id":"`+id+`"}`).Refused("validation_failed", "from_id not_found")
		h.server.Do(p, "GET", "/contacts/lookup?phone=%2B442079460018", nil).Want(404).Refused("contact_not_found")
		h.server.Do(p, "GET", "/contacts/lookup?email=ada%40example.com", nil).Want(404).Refused("contact_not_found")
		if a := h.server.Do(p, "GET", "/contacts", nil).Want(200); len(a.At("data").([]any)) != 1 {
			t.Errorf("lists %s", a.Bytes)
		}
	})
}
