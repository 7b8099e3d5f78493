package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// requests sends requests that no operation may accept.
func requests(t *testing.T, s *stage) {
	t.Run("to every operation", func(t *testing.T) { everyOperation(t, s) })
	t.Run("to every list", func(t *testing.T) { everyList(t, s) })
	t.Run("all that is wrong is named at once", func(t *testing.T) { allAtOnce(t, s) })
	t.Run("wrong types", func(t *testing.T) { wrongTypes(t, s) })
	t.Run("unknown addresses and methods", func(t *testing.T) { unknownAddresses(t, s) })
	t.Run("webhook targets inside the network", func(t *testing.T) { insideTargets(t, s) })
}

// everyOperation sends broken bodies and unknown parameters to every operation that is built.
func everyOperation(t *testing.T, s *stage) {
	big := append(append([]byte(`{"name":"`), bytes.Repeat([]byte("x"), 2<<20)...), `"}`...)
	for _, o := range s.doc.operations {
		if o.Rollout == "planned" {
			continue
		}
		path := o.at(nowhere)
		fields := s.a.refused(t, 400, "invalid_query", o.Method, path+"?no_such_parameter=1", bodyFor(o))
		if _, named := fields["no_such_parameter"]; !named {
			t.Errorf("%s does not name the unknown parameter: %v", o.ID, fields)
		}
		if !o.Body {
			continue
		}
		for _, text := range []string{`{"name":`, `{]`, "\x00\xff", `{"a":1}{"b":2}`, `nonsense`} {
			s.a.refused(t, 400, "malformed_json", o.Method, path, []byte(text))
		}
		s.namesExactAndOnce(t, o, path)
		if fields := s.a.refused(t, 400, "unknown_field", o.Method, path, map[string]any{"no_such_field": 1}); fields["no_such_field"] != "unknown_field" {
			t.Errorf("%s does not name the unknown field: %v", o.ID, fields)
		}
		for _, text := range []string{`[]`, `"text"`, `7`, `null`} {
			s.a.refused(t, 422, "validation_failed", o.Method, path, []byte(text))
		}
		s.a.refused(t, 415, "unsupported_media_type", o.Method, path, []byte(`name=x`), "Content-Type", "application/x-www-form-urlencoded")
		s.a.refused(t, 413, "payload_too_large", o.Method, path, big)
		s.a.refused(t, 413, "payload_too_large", o.Method, path, big, "Idempotency-Key", "big "+o.ID)
	}
}

// namesExactAndOnce sends the names of all members of a body in other spellings, twice, and with damaged texts.
//
// https://github.com/golang/go/issues/14750
// https://github.com/danielgtaylor/huma/issues/577
// https://github.com/Mnexa-AI/e2a/issues/804
func (s *stage) namesExactAndOnce(t *testing.T, o operation, path string) {
	s.a.refused(t, 415, "unsupported_media_type", o.Method, path, []byte(`{}`), "Content-Type", "application/json; charset=iso-8859-1")
	content := o.declared.RequestBody.Value.Content.Get("application/json")
	if content == nil || content.Schema == nil {
		return
	}
	for name := range content.Schema.Value.Properties {
		upper, mixed := strings.ToUpper(name), strings.ToUpper(name[:1])+name[1:]
		fields := s.a.refused(t, 400, "unknown_field", o.Method, path, fmt.Appendf(nil, `{%q:1,%q:2,%q:3}`, name, upper, mixed))
		if fields[upper] != "unknown_field" || fields[mixed] != "unknown_field" {
			t.Errorf("%s: other spellings of %s: %v", o.ID, name, fields)
		}
		twice := fmt.Appendf(nil, `{%q:1,"\u%04x%s":2}`, name, name[0], name[1:])
		if fields := s.a.refused(t, 400, "malformed_json", o.Method, path, twice); fields[name] != "repeated" {
			t.Errorf("%s: %s twice: %v", o.ID, name, fields)
		}
		for _, text := range []string{"\xff", `\ud800`} {
			if fields := s.a.refused(t, 400, "malformed_json", o.Method, path, fmt.Appendf(nil, `{%q:"%s"}`, name, text)); fields[name] == "" {
				t.Errorf("%s: damaged text in %s: %v", o.ID, name, fields)
			}
		}
	}
}

func bodyFor(o operation) any {
	if !o.Body {
		return nil
	}
	return map[string]any{}
}

// everyList requests invalid pages of every list.
func everyList(t *testing.T, s *stage) {
	lists := 0
	for _, o := range s.doc.operations {
		if o.Method != http.MethodGet || o.declared.Parameters.GetByInAndName("query", "cursor") == nil {
			continue
		}
		lists++
		values, _ := s.of(o)
		path := o.at(values)
		for _, limit := range []string{"0", "201", "-1", "x", "1e9", "9999999999999999999"} {
			s.a.refused(t, 400, "invalid_query", "GET", path+"?limit="+limit, nil)
		}
		for _, cursor := range []string{"x", "AAAA", strings.Repeat("A", 500), "%00"} {
			s.a.refused(t, 400, "invalid_cursor", "GET", path+"?cursor="+cursor, nil)
		}
		if o.declared.Parameters.GetByInAndName("query", "since") != nil {
			for _, at := range []string{"yesterday", "2026-13-01", "2026-01-01T25:00:00Z", "0"} {
				s.a.refused(t, 400, "invalid_query", "GET", path+"?since="+at, nil)
			}
		}
	}
	if lists < 8 {
		t.Errorf("only %d lists seen", lists)
	}
}

// allAtOnce expects one response that names every error: first all violations of the description, then all of other
// rules.
func allAtOnce(t *testing.T, s *stage) {
	for _, c := range []struct {
		path string
		body map[string]any
		want []string
	}{
		{"/users", map[string]any{"email": "not an address", "first_name": "", "extension": "x", "role": "king"},
			[]string{"email", "first_name", "extension", "role"}},
		{"/webhooks", map[string]any{"url": "ftp://example.org", "events": []string{"call.exploded"}}, []string{"url", "events"}},
		{"/webhooks", map[string]any{"url": 1, "events": "x", "timeout_seconds": 900, "description": false},
			[]string{"url", "events", "timeout_seconds", "description"}},
		{"/numbers", map[string]any{"number": "not a number", "trunk_id": "trk_none"}, []string{"number", "trunk_id"}},
		{"/trunks", map[string]any{"name": "", "host": "not a host", "port": 70000}, []string{"name", "host", "port"}},
		{"/devices", map[string]any{"user_id": "", "name": "", "kind": "toaster", "mac": "x"}, []string{"name", "kind", "mac"}},
		{"/devices", map[string]any{}, []string{"user_id", "name", "kind"}},
		{"/api-keys", map[string]any{"name": "", "scopes": []string{"world:rule"}}, []string{"name", "scopes"}},
	} {
		fields := s.a.refused(t, 422, "validation_failed", "POST", c.path, c.body)
		for _, f := range c.want {
			found := false
			for named := range fields {
				found = found || named == f || strings.HasPrefix(named, f+"[") || strings.HasPrefix(named, f+".")
			}
			if !found {
				t.Errorf("POST %s: %s is wrong too, but only %v is named", c.path, f, fields)
			}
		}
	}
}

func wrongTypes(t *testing.T, s *stage) {
	for _, c := range []struct {
		method, path, body string
	}{
		{"POST", "/users", `{"email":1,"first_name":"A"}`},
		{"POST", "/users", `{"email":"a@example.org","first_name":["A"]}`},
		{"POST", "/users", `{"email":"a@example.org","first_name":"A","skills":{"x":"y"}}`},
		{"POST", "/memory/search", `{"query":"x","limit":"many"}`},
		{"POST", "/memory/search", `{"query":"x","limit":1.5}`},
		{"POST", "/memory/search", `{"query":"x","limit":99999}`},
		{"POST", "/webhooks", `{"url":"https://example.org","events":"*"}`},
		{"POST", "/trunks", `{"name":"x","host":"192.0.2.1","port":"5060"}`},
		{"PUT", "/users/" + s.ids["/users"]["id"] + "/dnd", `{"enabled":"yes"}`},
	} {
		s.a.refused(t, 422, "validation_failed", c.method, c.path, []byte(c.body))
	}
}

// unknownAddresses expects problems for unknown paths and methods. A 405 names the allowed methods.
func unknownAddresses(t *testing.T, s *stage) {
	for _, path := range []string{"/nothing", "/users/x/nothing", "/calls/live/x", "/users//x"} {
		s.a.refused(t, 404, "not_found", "GET", path, nil)
	}
	r := s.a.call(t, "PUT", "/users", nil)
	if allow := r.Header.Get("Allow"); r.Status != 405 || !strings.Contains(allow, "GET") || !strings.Contains(allow, "POST") || strings.Contains(allow, "PUT") {
		t.Errorf("PUT /users: %d, Allow %q", r.Status, allow)
	}
	for _, method := range []string{"TRACE", "PROPFIND", "BREW"} {
		if r := s.a.call(t, method, "/users", nil); r.Status != 405 {
			t.Errorf("%s /users: %d %s", method, r.Status, r.Body)
		}
	}
	for _, d := range []desk{s.a, s.desk(s.a.Org, "test", "all")} {
		r := d.call(t, "GET", "/users/?limit=2", nil)
		if want := d.Prefix + "/users?limit=2"; r.Status != 308 || r.Header.Get("Location") != want {
			t.Errorf("GET %s/users/?limit=2: %d to %q, want 308 to %q", d.Prefix, r.Status, r.Header.Get("Location"), want)
		}
	}
	named := s.a.call(t, "GET", "/users", nil, "X-Request-Id", "mine-1")
	if id := named.Header.Get("X-Request-Id"); id != "mine-1" {
		t.Errorf("a chosen request id became %q", id)
	}
	for _, bad := range []string{"a b", strings.Repeat("x", 200), "<script>"} {
		if id := s.a.call(t, "GET", "/users", nil, "X-Request-Id", bad).Header.Get("X-Request-Id"); id == bad {
			t.Errorf("request id %q was taken over", bad)
		}
	}
}

// insideTargets lists webhook addresses that resolve into the operator's network or are no web addresses at all. This
// server allows loopback only, by --allow-targets.
func insideTargets(t *testing.T, s *stage) {
	for _, url := range []string{
		"http://10.0.0.5/", "https://10.0.0.5/", "https://172.16.9.9/", "https://192.168.1.1/", "https://169.254.169.254/latest/meta-data/",
		"https://100.64.0.1/", "https://0.0.0.0/", "https://[::]/", "https://[::1]/", "https://[fd00::1]/", "https://[fe80::1]/",
		"https://[::ffff:10.0.0.1]/", "https://[64:ff9b::a00:1]/", "https://192.0.2.1/", "https://198.18.0.1/", "https://224.0.0.1/",
		"https://255.255.255.255/", "http://93.184.215.14/", "https://user:secret@example.org/", "file:///etc/passwd",
		"gopher://example.org/", "ftp://example.org/", "javascript:alert(1)", "//example.org/", "example.org", "https://", "https:///path",
		"https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/", "https://example.org:99999/", "https://exa mple.org/",
	} {
		fields := s.a.refused(t, 422, "validation_failed", "POST", "/webhooks", map[string]any{"url": url, "events": []string{"*"}})
		if _, named := fields["url"]; !named {
			t.Errorf("%s: url is not named in %v", url, fields)
		}
	}
}
