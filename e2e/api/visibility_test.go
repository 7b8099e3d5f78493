package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/platform/access"
)

// colleagues requests everything that belongs to the call between Alice and Bob with keys of users who had no part in it: an agent, and a
// supervisor of a queue that the call was not in. They get the answers for records that do not exist. Bob and the owner get all.
func colleagues(t *testing.T, s *stage) {
	users := s.people(t)
	for _, role := range []string{"agent", "supervisor"} {
		d := s.deskOf(t, users[role], role)
		s.hiddenById(t, d, role)
		s.hiddenInLists(t, d, role)
		s.hiddenInAnalytics(t, d, 0)
		s.hiddenFromAssistant(t, d, role)
	}
	s.hiddenInExport(t, s.deskOf(t, users["agent"], "agent"))
	s.stream(t, s.deskOf(t, users["agent"], "agent"), false)

	bob := s.deskOf(t, users["bob"], "agent")
	for _, path := range []string{"/calls/" + s.call, "/cdr/" + s.call, "/recordings/" + s.ids["/recordings"]["id"], "/calls/" + s.call + "/transcript",
		"/transcripts/" + s.ids["/transcripts"]["id"], "/calls/" + s.call + "/events"} {
		bob.want(t, 200, "GET", path, nil, nil)
	}
	for _, path := range []string{"/calls", "/cdr", "/recordings", "/transcripts"} {
		if r := bob.want(t, 200, "GET", path, nil, nil); !bytes.Contains(r.Body, []byte(s.call)) {
			t.Errorf("Bob does not see the own call in %s: %s", path, r.Body)
		}
	}
	s.hiddenInAnalytics(t, bob, 1)
	s.stream(t, bob, true)
	for _, id := range []string{users["agent"], users["supervisor"]} {
		s.a.want(t, 204, "DELETE", "/users/"+id, nil, nil)
	}
	s.a.want(t, 204, "DELETE", "/queues/"+users["queue"], nil, nil)
}

// people adds an agent, and a supervisor with a queue. It returns their ids and those of Bob and the queue.
func (s *stage) people(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, role := range []string{"agent", "supervisor"} {
		var u struct{ ID string }
		s.a.want(t, 201, "POST", "/users", map[string]any{"email": role + "@example.com", "first_name": "Carol", "role": role}, &u)
		all[role] = u.ID
	}
	var queue struct{ ID string }
	s.a.want(t, 201, "POST", "/queues", map[string]any{"name": "Elsewhere"}, &queue)
	s.a.want(t, 201, "POST", "/queues/"+queue.ID+"/members", map[string]any{"user_id": all["supervisor"]}, nil)
	var page struct{ Data []struct{ ID string } }
	s.a.want(t, 200, "GET", "/users?q=bob%40example.com", nil, &page)
	all["queue"], all["bob"] = queue.ID, page.Data[0].ID
	return all
}

// deskOf makes a key of a user with all scopes of a role.
func (s *stage) deskOf(t *testing.T, user, role string) desk {
	t.Helper()
	k := mint(t, s.a, map[string]any{"user_id": user, "scopes": access.RoleScopes(role)})
	return desk{&rig.Client{T: t, Server: s.Server, Org: s.a.Org, Key: k.Key, Prefix: prefix}, s.doc}
}

// guarded lists the prefixes of ids of records that belong to the call, or to Alice.
var guarded = []string{"call_", "cdr_", "rec_", "trn_", "vm_", "cbk_", "exp_", "note_", "leg_"}

// hidden returns the ids of all records that belong to the call.
func (s *stage) hidden(t *testing.T) (all []string) {
	t.Helper()
	var record struct{ ID string }
	s.a.want(t, 200, "GET", "/cdr/"+s.call, nil, &record)
	all = append(all, record.ID)
	for _, values := range s.ids {
		for _, v := range values {
			if isGuarded(v) && !strings.HasSuffix(v, strings.Repeat("0", 20)) {
				all = append(all, v)
			}
		}
	}
	return all
}

func isGuarded(id string) bool {
	for _, p := range guarded {
		if strings.HasPrefix(id, p) {
			return true
		}
	}
	return false
}

// hiddenById calls every operation whose path has the id of a record of the call.
func (s *stage) hiddenById(t *testing.T, d desk, role string) {
	t.Helper()
	asked := 0
	for _, o := range s.doc.operations {
		values, _ := s.of(o)
		about := false
		for _, name := range o.Parameters {
			about = about || isGuarded(values[name])
		}
		if !about || o.Rollout == "planned" {
			continue
		}
		var body any
		if o.Body {
			body = map[string]any{}
		}
		if b, ok := bodies[o.ID]; ok {
			body = b
		}
		r := d.call(t, o.Method, o.at(values), body)
		if r.Status == 403 && problemOf(r).Code == "insufficient_scope" {
			continue // roles have other scopes than this operation needs
		}
		if asked++; r.Status != 404 || problemOf(r).Code != "not_found" {
			t.Errorf("%s about somebody else's call: the %s gets %d %s", o.ID, role, r.Status, r.Body)
		}
	}
	if asked < 40 {
		t.Errorf("only %d operations are about a call", asked)
	}
}

// hiddenInLists calls every operation that reads, without and with ids of the call in each parameter of the query.
func (s *stage) hiddenInLists(t *testing.T, d desk, role string) {
	t.Helper()
	hidden := s.hidden(t)
	reads := func(method, path string, body any) {
		r := d.call(t, method, path, body)
		for _, id := range hidden {
			if bytes.Contains(r.Body, []byte(id)) {
				t.Errorf("%s shows the %s %s: %s", path, role, id, r.Body)
			}
		}
	}
	for _, o := range s.doc.operations {
		if o.Method != "GET" || o.Rollout == "planned" {
			continue
		}
		values, _ := s.of(o)
		path := o.at(values)
		reads("GET", path+asked[o.ID], nil)
		for _, p := range o.declared.Parameters {
			name := p.Value.Name
			switch {
			case p.Value.In != "query":
			case strings.HasSuffix(name, "call_id"):
				reads("GET", path+"?"+name+"="+s.call, nil)
			case name == "phone":
				reads("GET", path+"?phone="+url.QueryEscape(s.phone), nil)
			case name == "include_total":
				var page struct{ Total *int }
				r := d.call(t, "GET", path+"?include_total=true", nil)
				if json.Unmarshal(r.Body, &page); aboutCalls(o.ID) && r.Status == 200 && (page.Total == nil || *page.Total != 0) {
					t.Errorf("%s counts other people's records for the %s: %s", o.ID, role, r.Body)
				}
			}
		}
	}
	reads("POST", "/memory/search", map[string]any{"query": "a call about anything", "phone": s.phone})
	reads("POST", "/memory/search", map[string]any{"query": "a call about anything"})
	fields := d.refused(t, 422, "validation_failed", "POST", "/callbacks", map[string]any{"to": "ext:" + s.phone, "origin_call_id": s.call})
	if fields["origin_call_id"] != "not_found" {
		t.Errorf("a callback of somebody else's call is refused for %v", fields)
	}
}

// aboutCalls reports whether a list has records of calls only.
func aboutCalls(operation string) bool {
	kind, _, _ := strings.Cut(operation, ".")
	return strings.Contains(" calls cdr recordings transcripts voicemail callbacks ", " "+kind+" ")
}

func (s *stage) hiddenInAnalytics(t *testing.T, d desk, want int) {
	t.Helper()
	var report struct{ Totals struct{ Total int } }
	d.want(t, 200, "GET", "/analytics/calls", nil, &report)
	if report.Totals.Total != want {
		t.Errorf("%d calls are counted, want %d", report.Totals.Total, want)
	}
	for _, path := range []string{"/analytics/agents", "/analytics/queues", "/analytics/insights", "/analytics/quality"} {
		if r := d.want(t, 200, "GET", path, nil, nil); want == 0 && bytes.Contains(r.Body, []byte(s.ids["/agents"]["id"])) {
			t.Errorf("%s shows the calls of somebody else: %s", path, r.Body)
		}
	}
}

// hiddenFromAssistant calls the tools that read calls.
func (s *stage) hiddenFromAssistant(t *testing.T, d desk, role string) {
	t.Helper()
	for tool, args := range map[string]map[string]any{"get_call_detail": {"call_id": s.call}, "get_call_history": {}, "get_live_calls": {},
		"get_missed_calls": {}, "get_caller_memory": {"phone": s.phone}, "search_call_memory": {"query": "anything"},
		"get_screen_pop": {"phone": s.phone}, "add_call_note": {"call_id": s.call, "body": "Mine now."}} {
		message, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args,
			"_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{},
				"io.modelcontextprotocol/clientInfo": map[string]any{"name": "raw", "version": "1"}}}})
		q, _ := http.NewRequest("POST", "http://"+s.HTTP+"/mcp/sse", bytes.NewReader(message))
		for name, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Authorization": "Bearer " + d.Key, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool} {
			q.Header.Set(name, v)
		}
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(a.Body)
		a.Body.Close()
		if named := args["call_id"] != nil; a.StatusCode != 200 || named && !bytes.Contains(b, []byte("not_found")) || !named && bytes.Contains(b, []byte(s.call)) {
			t.Errorf("the tool %s answers the %s: %d %s", tool, role, a.StatusCode, b)
		}
	}
}

// hiddenInExport exports the records with a key of a user: the file has none.
func (s *stage) hiddenInExport(t *testing.T, d desk) {
	t.Helper()
	var e struct {
		ID, Status string
		Total      int `json:"records_total"`
	}
	d.want(t, 202, "POST", "/cdr/exports", map[string]any{"since": "2020-01-01", "until": "2999-01-01", "format": "csv"}, &e)
	rig.Until(t, "the file of an export", 20*time.Second, func() bool {
		d.want(t, 200, "GET", "/cdr/exports/"+e.ID, nil, &e)
		return e.Status == "ready"
	})
	if r := d.want(t, 200, "GET", "/cdr/exports/"+e.ID+"/file", nil, nil); e.Total != 0 || bytes.Contains(r.Body, []byte(s.call)) {
		t.Errorf("the export has %d records: %s", e.Total, r.Body)
	}
}

// stream reads the events of the past, up to one that everybody sees.
func (s *stage) stream(t *testing.T, d desk, sees bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit.Hang(20*time.Second))
	defer cancel()
	q, _ := http.NewRequestWithContext(ctx, "GET", "http://"+s.HTTP+prefix+"/events/stream?after_sequence=0", nil)
	q.Header.Set("Authorization", "Bearer "+d.Key)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	s.a.want(t, 200, "PUT", "/agents/"+s.ids["/agents"]["id"]+"/presence", map[string]any{"status": "away", "reason": d.Key[len(d.Key)-6:]}, nil)
	saw, kind := "", ""
	for lines := bufio.NewScanner(a.Body); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = name
		}
		if strings.Contains(lines.Text(), s.call) && kind != "agent.presence" { // everybody sees that an agent is in a call
			saw += kind + " "
		}
		if strings.Contains(lines.Text(), d.Key[len(d.Key)-6:]) {
			break
		}
	}
	if ctx.Err() != nil {
		t.Fatal("the last event did not come")
	}
	if (saw != "") != sees {
		t.Errorf("the stream shows events of the call: %v, want any: %v", saw, sees)
	}
	s.a.want(t, 200, "PUT", "/agents/"+s.ids["/agents"]["id"]+"/presence", map[string]any{"status": "offline"}, nil)
}
