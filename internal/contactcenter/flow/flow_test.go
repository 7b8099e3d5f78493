package flow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// fixture holds the services for a test of flows.
type fixture struct {
	*flow.Service
	d       *db.DB
	org     string
	server  *optest.Server
	numbers map[string][]string // by flow
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	b := bus.New()
	orgs := org.New(d, b, time.Now)
	o, err := orgs.Create(context.Background(), "Acme", "GB")
	if err != nil {
		t.Fatal(err)
	}
	h := &fixture{d: d, org: o.ID, numbers: map[string][]string{}}
	h.Service = flow.New(flow.Config{DB: d, Orgs: orgs, Bus: b, References: h, Numbers: h, Queues: h, Forwards: h})
	h.server = optest.New(t, d, h.Operations()...)
	return h
}

func (h *fixture) do(method, path string, body any) *optest.Answer {
	return h.server.Do(optest.Admin(h.org), method, path, body)
}

// welcome is a flow of three steps.
const welcome = `"entry":"hi","nodes":[
	{"id":"hi","type":"play","config":{"text":"Welcome, {{caller.number}}."},"next":{"done":"menu"}},
	{"id":"menu","type":"menu","config":{"prompt":{"text":"Press one."},"digits":{"1":"sales"}},"next":{"1":"sales","timeout":"bye","invalid":"menu"}},
	{"id":"sales","type":"queue","config":{"queue_id":"que_1"},"next":{"timeout":"bye","overflow":"bye"}},
	{"id":"bye","type":"hangup","config":{}}]`

func TestPublish_VersionsAreImmutable(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		a := h.do("POST", "/flows", `{"name":"Main","timezone":"Europe/London",`+welcome+`}`).Want(201)
		id := a.Text("id")
		if a.Text("status") != "draft" || a.At("version") != 0.0 || a.At("draft_version") != 1.0 || a.Text("kind") != "graph" || a.Text("entry") != "hi" {
			t.Errorf("created %s", a.Bytes)
		}
		if _, err := h.Program(context.Background(), h.org, id); !db.IsNone(err) {
			t.Errorf("a draft can be carried out: %v", err)
		}
		if p := h.do("POST", "/flows/"+id+"/publish", `{"comment":"first"}`).Want(200); p.Text("status") != "published" || p.At("version") != 1.0 || p.At("draft_version") != nil {
			t.Errorf("published %s", p.Bytes)
		}
		h.do("POST", "/flows/"+id+"/publish", `{}`).Want(409).Refused("invalid_state")
		before, err := h.Program(context.Background(), h.org, id)
		if err != nil || before.Version != 1 || before.First().ID != "hi" {
			t.Fatalf("program %+v, %v", before, err)
		}
		h.do("PATCH", "/flows/"+id, `{"name":"Renamed","nodes":[{"id":"bye","type":"hangup"}],"entry":"bye"}`).Want(200)
		if g := h.do("GET", "/flows/"+id+"?version=published", nil).Want(200); g.Text("entry") != "hi" || g.Text("name") != "Renamed" || g.At("draft_version") != 2.0 {
			t.Errorf("in force: %s", g.Bytes)
		}
		h.do("POST", "/flows/"+id+"/publish", `{}`).Want(200)
		after, err := h.Program(context.Background(), h.org, id)
		if err != nil || after.Version != 2 || after.First().ID != "bye" || before.First().ID != "hi" {
			t.Errorf("program %+v, %v", after, err)
		}
		h.do("POST", "/flows/"+id+"/rollback", `{"version":9}`).Want(422).Refused("validation_failed", "version not_found")
		if r := h.do("POST", "/flows/"+id+"/rollback", `{"version":1}`).Want(200); r.At("version") != 3.0 || r.Text("entry") != "hi" {
			t.Errorf("rolled back: %s", r.Bytes)
		}
		v := h.do("GET", "/flows/"+id+"/versions?limit=2&include_total=true", nil).Want(200)
		if v.At("total") != 3.0 || v.At("data.0.version") != 3.0 || v.At("data.0.in_force") != true || v.Text("data.0.comment") != "version 1 again" {
			t.Errorf("versions %s", v.Bytes)
		}
		if v = h.do("GET", "/flows/"+id+"/versions?limit=2&cursor="+v.Text("next_cursor"), nil).Want(200); v.At("data.0.version") != 1.0 || v.Text("data.0.comment") != "first" {
			t.Errorf("versions %s", v.Bytes)
		}
		if g := h.do("GET", "/flows/"+id+"?version=2", nil).Want(200); g.Text("entry") != "bye" {
			t.Errorf("version 2: %s", g.Bytes)
		}
		h.do("GET", "/flows/"+id+"?version=7", nil).Want(404)
		h.do("GET", "/flows/"+id+"?version=last", nil).Want(400).Refused("invalid_query")
	})
}

func TestValidate_ListsAllFaults(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	a := h.do("POST", "/flows/validate", `{"name":"x","entry":"nowhere","nodes":[
		{"id":"bad id","type":"hangup"},
		{"id":"what","type":"teleport"},
		{"id":"two","type":"hangup"},{"id":"two","type":"hangup"},
		{"id":"typo","type":"play","config":{"txet":"x"}},
		{"id":"say","type":"play","config":{"audio_id":"aud_none"},"next":{"done":"gone","loudly":"two"}},
		{"id":"menu","type":"menu","config":{"prompt":"Hi","digits":{"12":"x"}},"next":{}},
		{"id":"queue","type":"queue","config":{"queue_id":"que_none"},"next":{"timeout":"two","overflow":"two"}},
		{"id":"group","type":"hunt_group","config":{"members":[{"user_id":"usr_none"}]},"next":{"no_answer":"two"}},
		{"id":"there","type":"transfer","config":{"to":"flow:flw_none"},"next":{"failed":"two"}},
		{"id":"time","type":"hours","config":{"hours":{"weekly":{"mon":[{"from":"9","to":"10"}]}},"holidays":["xmas"]},"next":{"open":"two","closed":"two"}},
		{"id":"when","type":"condition","config":{"expression":"caller.numbr =="},"next":{"true":"two","false":"two"}},
		{"id":"slow","type":"condition","config":{"expression":"all([1], # > 0)"},"next":{"true":"two","false":"two"}},
		{"id":"mail","type":"voicemail","config":{"mailbox":"usr_none"}},
		{"id":"text","type":"sms","config":{"from":"+15551234567","body":"{{oops"},"next":{"sent":"two","failed":"two"}},
		{"id":"talk","type":"ai_agent","config":{"instructions":"","handoff":"queue:que_none","greeting":"{{oops","tools":["juggle","http"],"max_minutes":0,"mailbox":"usr_none","sms_from":"+1555"}},
		{"id":"call","type":"ai_agent","config":{"instructions":"x","tools":["schedule_callback"],"http":{"url":"ftp://x"},"callback_queue_id":""},"next":{"failed":"two"}},
		{"id":"back","type":"ai_agent","config":{"instructions":"x","tools":["schedule_callback"],"callback_queue_id":"que_none"},"next":{"failed":"two"}},
		{"id":"a","type":"set","config":{"variables":{"x":1}},"next":{"done":"b"}},
		{"id":"b","type":"tag","config":{"tags":["vip"]},"next":{"done":"a"}}]}`).Want(200)
	if a.At("valid") != false {
		t.Fatalf("got %s", a.Bytes)
	}
	found := map[string]bool{}
	list, _ := a.Body["errors"].([]any)
	for _, e := range list {
		x := e.(map[string]any)
		found[fmt.Sprintf("%s %s", x["node_id"], x["code"])] = true
	}
	for _, want := range []string{" entry_not_found", "bad id invalid_id", "what unknown_type", "two duplicate_id", "typo invalid_config", "say audio_not_found",
		"say next_not_found", "say unknown_outcome", "menu invalid_digit", "menu missing_outcome", "queue queue_not_found", "group user_not_found",
		"there flow_not_found", "time invalid_hours", "when invalid_expression", "slow invalid_expression", "mail mailbox_not_found", "text number_not_found",
		"talk invalid_length", "talk queue_not_found", "talk invalid_template", "talk invalid_value", "talk http_required", "talk out_of_range", "talk mailbox_not_found",
		"talk number_not_found", "talk missing_outcome", "call queue_required", "call invalid_url", "back queue_not_found",
		"text invalid_template", "a endless_loop", "b endless_loop"} {
		if !found[want] {
			t.Errorf("%q is missing", want)
		}
		delete(found, want)
	}
	for more := range found {
		t.Errorf("%q was found too", more)
	}
	h.do("POST", "/flows", `{"name":"x","entry":"a","nodes":[{"id":"a","type":"queue","config":{"queue_id":"que_none"}}]}`).Want(422).
		Refused("flow_invalid", "nodes.a queue_not_found", "nodes.a missing_outcome")
	h.do("POST", "/flows", `{"name":"","timezone":"Mars","language":"?","ivr":{"greeting":"x","options":{},"timeout_to":"hangup"},"entry":"x"}`).Want(422).
		Refused("validation_failed", "name invalid_length", "timezone invalid_timezone", "language invalid_language", "nodes ambiguous")
	if l := h.do("GET", "/flows", nil).Want(200); l.Has("data.0", "id") {
		t.Errorf("something was kept: %s", l.Bytes)
	}
	odd := h.do("POST", "/flows/validate", `{"name":"x","entry":"a","nodes":[{"id":"a","type":"hangup"},{"id":"b","type":"hangup"}]}`).Want(200)
	if odd.At("valid") != true || odd.Text("warnings.0.node_id") != "b" || odd.Text("warnings.0.code") != "unreachable" {
		t.Errorf("got %s", odd.Bytes)
	}
}

// https://github.com/golang/go/issues/14750
func TestValidate_ConfigNamesExact(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	a := h.do("POST", "/flows/validate", `{"name":"x","entry":"mail","nodes":[
		{"id":"mail","type":"voicemail","config":{"mailbox":"usr_none","max_seconds":5,"MAX_SECONDS":86400}}]}`)
	if !strings.Contains(string(a.Bytes), "MAX_SECONDS: unexpected property; known are") {
		t.Errorf("another spelling in a config: %s", a.Bytes)
	}
}

func TestShortForms_ExpandToGraphs(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	for kind, c := range map[string]struct{ body, first string }{
		"ivr": {`"ivr":{"greeting":"Press one for sales.","options":{"1":"queue:que_1","2":"+442079460018","3":"voicemail:usr_1","4":"hangup"},"timeout_to":"user:usr_1",
			"hours":{"weekly":{"mon":[{"from":"09:00","to":"17:00"}]}}}`, "hours"},
		"hunt_group": {`"hunt_group":{"members":[{"user_id":"usr_1"},{"number":"+442079460018"}],"strategy":"sequential","no_answer_to":"voicemail:usr_1"}`, "group"},
		"ai_agent":   {`"ai_agent":{"instructions":"Be kind.","tools":["transfer"],"handoff_to":"queue:que_1"}`, "assistant"},
	} {
		a := h.do("POST", "/flows", `{"name":"`+kind+`","publish":true,"number_ids":["num_1"],`+c.body+`}`).Want(201)
		if a.Text("kind") != kind || a.Text("entry") != c.first || a.Text("status") != "published" || a.Text("number_ids.0") != "num_1" || a.Has("warnings.0", "code") {
			t.Errorf("%s: %s", kind, a.Bytes)
		}
		if _, err := h.Program(context.Background(), h.org, a.Text("id")); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	h.do("POST", "/flows", `{"name":"x","publish":true,"number_ids":["num_none"],"hunt_group":{"members":[{"user_id":"usr_1"}],"no_answer_to":"hangup"}}`).Want(422).
		Refused("validation_failed", "number_ids not_found")
	h.do("POST", "/flows", `{"name":"x","number_ids":["num_1"],"hunt_group":{"members":[{"user_id":"usr_1"}],"no_answer_to":"hangup"}}`).Want(422).
		Refused("validation_failed", "number_ids not_published")
	if a := h.do("GET", "/flows?kind=ivr&status=published&q=IV", nil).Want(200); a.Text("data.0.name") != "ivr" || a.Has("data.0", "nodes") || a.Has("data.1", "id") {
		t.Errorf("list %s", a.Bytes)
	}
}

func TestDeleteFlow_RefusedWhileInUse(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.do("POST", "/flows", `{"name":"Main","publish":true,"number_ids":["num_1"],`+welcome+`}`).Want(201).Text("id")
		other := h.do("POST", "/flows", fmt.Sprintf(`{"name":"x","entry":"a","nodes":[{"id":"a","type":"transfer","config":{"to":"flow:%s"},"next":{"failed":"b"}},
			{"id":"b","type":"hangup"}]}`, id)).Want(201).Text("id")
		a := h.do("DELETE", "/flows/"+id, nil).Want(409).Refused("in_use")
		if a.At("used_by.0") != "num_1" || a.At("used_by.1") != other {
			t.Errorf("used by %s", a.Bytes)
		}
		for _, name := range []string{"que_1", id} {
			if by, err := h.UsedBy(context.Background(), d.Read(context.Background()), h.org, name); err != nil || len(by) != 1 {
				t.Errorf("%s is used by %v, %v", name, by, err)
			}
		}
		delete(h.numbers, id)
		h.do("DELETE", "/flows/"+other, nil).Want(204)
		h.do("DELETE", "/flows/"+id, nil).Want(204)
		h.do("PATCH", "/flows/"+id, `{"name":"x"}`).Want(404)
		if a := h.do("GET", "/flows/"+id, nil).Want(200); a.Text("status") != "archived" {
			t.Errorf("removed: %s", a.Bytes)
		}
		if a := h.do("GET", "/flows", nil).Want(200); a.Has("data.0", "id") {
			t.Errorf("list %s", a.Bytes)
		}
	})
}

func TestSimulate_Path(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id := h.do("POST", "/flows", `{"name":"Main","timezone":"Europe/London","entry":"who","nodes":[
		{"id":"who","type":"contact_lookup","config":{},"next":{"hit":"vip","miss":"open"}},
		{"id":"vip","type":"condition","config":{"expression":"contact.vip == true && caller.number startsWith \"+44\""},"next":{"true":"desk","false":"open"}},
		{"id":"desk","type":"transfer","config":{"to":"user:usr_1"},"next":{"failed":"open"}},
		{"id":"open","type":"hours","config":{"hours":{"weekly":{"mon":[{"from":"09:00","to":"17:00"}]}},"holidays":["12-25"]},"next":{"open":"ask","closed":"mail","holiday":"mail"}},
		{"id":"ask","type":"menu","config":{"prompt":"Press one.","digits":{"1":"Sales"},"retries":1},"next":{"1":"code","timeout":"mail","invalid":"bye"}},
		{"id":"code","type":"collect","config":{"prompt":"Code?","variable":"code","min":4,"max":4},"next":{"done":"keep","timeout":"bye"}},
		{"id":"keep","type":"set","config":{"variables":{"note":"code {{variables.code}} at {{time.hour}}"}},"next":{"done":"right"}},
		{"id":"right","type":"condition","config":{"expression":"variables.note == \"code 1234 at 10\""},"next":{"true":"line","false":"bye"}},
		{"id":"line","type":"queue","config":{"queue_id":"que_1"},"next":{"timeout":"mail","overflow":"bye","empty":"bye"}},
		{"id":"mail","type":"voicemail","config":{"mailbox":"flow"}},
		{"id":"bye","type":"hangup","config":{"reason":"done"}}]}`).Want(201).Text("id")
	const monday = `"from":"020 7946 0018","at":"2026-11-23T10:00:00Z"`
	for _, c := range []struct{ body, path, outcome string }{
		{monday + `,"inputs":["1","1234","timeout"]`, "who:miss open:open ask:1 code:done keep:done right:true line:timeout mail:left", "voicemail.left"},
		{monday + `,"inputs":["1","1234"]`, "who:miss open:open ask:1 code:done keep:done right:true line:answered", "queue.answered"},
		{monday + `,"inputs":["1","999"]`, "who:miss open:open ask:1 code:timeout bye:", "hangup"},
		{monday + `,"inputs":["7","8"]`, "who:miss open:open ask:invalid bye:", "hangup"},
		{monday, "who:miss open:open ask:timeout mail:left", "voicemail.left"},
		{monday + `,"crm":{"vip":true}`, "who:hit vip:true desk:answered", "transfer.answered"},
		{monday + `,"crm":{"vip":true},"inputs":["hit","failed"]`, "who:hit vip:true desk:failed open:open ask:timeout mail:left", "voicemail.left"},
		{`"from":"anonymous","at":"2026-12-25T10:00:00Z"`, "who:miss open:holiday mail:left", "voicemail.left"},
		{`"from":"anonymous","at":"2026-11-24T10:00:00Z"`, "who:miss open:closed mail:left", "voicemail.left"},
	} {
		a := h.do("POST", "/flows/"+id+"/simulate", "{"+c.body+"}").Want(200)
		var path []string
		list, _ := a.Body["path"].([]any)
		for _, e := range list {
			x := e.(map[string]any)
			path = append(path, fmt.Sprintf("%s:%s", x["node_id"], x["output"]))
		}
		if got := strings.Join(path, " "); got != c.path || a.Text("outcome") != c.outcome {
			t.Errorf("%s\n went %s, %s\nwant %s, %s", c.body, got, a.Text("outcome"), c.path, c.outcome)
		}
	}
	round := h.do("POST", "/flows", `{"name":"r","entry":"a","nodes":[{"id":"a","type":"play","config":{"text":"x"},"next":{"done":"a"}}]}`).Want(201).Text("id")
	if a := h.do("POST", "/flows/"+round+"/simulate", `{"from":"anonymous"}`).Want(200); a.Text("outcome") != "too_many_steps" {
		t.Errorf("round: %s", a.Bytes)
	}
	h.do("POST", "/flows/"+id+"/simulate", `{"from":"x"}`).Want(422).Refused("validation_failed", "from invalid_e164")
}

func TestExpression_RejectsUnboundedCode(t *testing.T) {
	t.Parallel()
	s := flow.Scope{Variables: map[string]any{"n": 3.0, "list": []any{"a", "b"}}, Caller: flow.Caller{Number: "+4420"}, Contact: map[string]any{"tags": []any{"vip"}}}
	for text, want := range map[string]bool{`variables.n > 2`: true, `"vip" in contact.tags`: true, `caller.number matches "^\\+44"`: true,
		`len(variables.list) == 3`: false, `contact.nothing == nil`: true} {
		e, err := flow.ParseExpression(text, true)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := e.IsTrue(s); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{`1..1000000 == nil`, `any(variables.list, true)`, `map([1], #) == nil`, `repeat("x", 1000000) == ""`, `nonsense`, `1 +`, `"text"`, `caller.numbr == ""`,
		strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500), strings.Repeat("true && ", 150) + "true"} {
		if e, err := flow.ParseExpression(text, true); err == nil {
			_, err = e.IsTrue(s)
			t.Errorf("%.60q is taken; its value: %v", text, err)
		}
	}
	for text, want := range map[string]string{"Hi {{caller.number}}!": "Hi +4420!", "{{variables.none}}x": "x", "a{{1+1}}b{{variables.n}}": "a2b3", "{ } }}": "{ } }}"} {
		tpl, err := flow.ParseTemplate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := tpl.Fill(s); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

func FuzzFlowsNeverPanic(f *testing.F) {
	f.Add(`caller.number == "x"`)
	f.Add(`{{`)
	f.Fuzz(func(t *testing.T, text string) {
		s := flow.Scope{Variables: map[string]any{}}
		if e, err := flow.ParseExpression(text, false); err == nil {
			_, _ = e.Value(s)
		}
		if tpl, err := flow.ParseTemplate(text); err == nil {
			_ = tpl.Fill(s)
		}
	})
}

func TestFlows_OtherOrganisationNotFound(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id := h.do("POST", "/flows", `{"name":"Main","publish":true,`+welcome+`}`).Want(201).Text("id")
	other, err := org.New(h.d, bus.New(), time.Now).Create(context.Background(), "Other", "GB")
	if err != nil {
		t.Fatal(err)
	}
	p := optest.Admin(other.ID)
	for _, c := range [][3]string{{"GET", "", ""}, {"PATCH", "", `{"name":"x"}`}, {"DELETE", "", ""}, {"POST", "/publish", `{}`}, {"GET", "/versions", ""},
		{"POST", "/rollback", `{"version":1}`}, {"POST", "/simulate", `{"from":"anonymous"}`}} {
		var body any
		if c[2] != "" {
			body = c[2]
		}
		h.server.Do(p, c[0], "/flows/"+id+c[1], body).Want(404)
	}
	if _, err := h.Program(context.Background(), other.ID, id); !db.IsNone(err) {
		t.Errorf("its program: %v", err)
	}
}
