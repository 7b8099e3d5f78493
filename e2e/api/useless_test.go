package api_test

import (
	"slices"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// uselessKeys calls every operation with keys that were valid, or are valid elsewhere.
func uselessKeys(t *testing.T, s *stage) {
	made := func(body map[string]any) (key struct{ ID, Key string }) {
		body["name"], body["scopes"] = "useless", []string{"calls:read", "users:admin"}
		s.a.want(t, 201, "POST", "/api-keys", body, &key)
		return key
	}
	revoked, bound := made(map[string]any{}), made(map[string]any{"allowed_ips": []string{"203.0.113.0/24"}})
	expiring := made(map[string]any{"expires_at": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)})
	s.a.want(t, 204, "DELETE", "/api-keys/"+revoked.ID, nil, nil)
	late := desk{&rig.Client{T: t, Server: s.Server, Key: expiring.Key, Prefix: prefix}, s.doc}
	rig.Until(t, "the end of a key", 10*time.Second, func() bool { return late.call(t, "GET", "/me", nil).Status == 401 })
	for _, c := range []struct {
		key    string
		status int
		code   string
	}{{revoked.Key, 401, "key_revoked"}, {expiring.Key, 401, "key_expired"}, {bound.Key, 403, "ip_not_allowed"}} {
		d := desk{&rig.Client{T: t, Server: s.Server, Key: c.key, Prefix: prefix}, s.doc}
		for _, o := range s.doc.operations {
			if o.Scope != "none" {
				d.refused(t, c.status, c.code, o.Method, o.at(nowhere), nil)
			}
		}
	}
}

// audited creates, changes and is refused a record, and finds each action in the audit log.
func audited(t *testing.T, s *stage) {
	d := s.org(t, "live")
	var u struct{ ID string }
	id := d.want(t, 201, "POST", "/users", map[string]any{"email": "log@example.org", "first_name": "Log"}, &u, "X-Request-Id", "audit-1").Header.Get("X-Request-Id")
	d.want(t, 200, "PATCH", "/users/"+u.ID, map[string]any{"last_name": "Ged"}, nil)
	weak := s.desk(d.Org, "live", "calls:read")
	for range 3 {
		weak.refused(t, 403, "insufficient_scope", "DELETE", "/users/"+u.ID, nil)
	}
	d.want(t, 204, "DELETE", "/users/"+u.ID, nil, nil)
	var log page
	d.want(t, 200, "GET", "/audit-log?target="+u.ID, nil, &log)
	want := []string{"users.delete done", "users.delete denied", "users.update done", "users.create done"}
	if len(log.Data) != len(want) {
		t.Fatalf("%d lines, want %d: %v", len(log.Data), len(want), log.Data)
	}
	for i, w := range want {
		l := log.Data[i]
		if got := l["operation"].(string) + " " + l["outcome"].(string); got != w || l["target_id"] != u.ID {
			t.Errorf("line %d is %s of %v, want %s", i, got, l["target_id"], w)
		}
	}
	if first := log.Data[3]; first["request_id"] != id || first["status"] != 201.0 || first["actor"].(map[string]any)["address"] != "127.0.0.1" {
		t.Errorf("the first line is %v", first)
	}
	var none page
	if s.b.want(t, 200, "GET", "/audit-log?target="+u.ID, nil, &none); len(none.Data) != 0 {
		t.Errorf("another organisation sees %v", none.Data)
	}
}

// everyRepeat sends every change twice under one idempotency key, and then a different change under it.
func everyRepeat(t *testing.T, s *stage) {
	d := s.org(t, "live")
	g := newGenerator(7)
	kept := 0
	for _, o := range s.doc.operations {
		if o.Method == "GET" || o.Rollout == "planned" {
			continue
		}
		var body any
		if o.Body {
			if content := o.declared.RequestBody.Value.Content.Get("application/json"); content != nil {
				body = g.value("", content.Schema.Value, 0)
			}
			if b, ok := bodies[o.ID]; ok {
				body = b
			}
		}
		path, key, named := o.at(nowhere), "every "+o.ID, "repeat-"+o.ID
		first := d.call(t, o.Method, path, body, "Idempotency-Key", key, "X-Request-Id", named)
		again := d.call(t, o.Method, path, body, "Idempotency-Key", key, "X-Request-Id", named)
		replayed := again.Header.Get("Idempotency-Replayed") == "true"
		if first.Status != again.Status && first.Status < 429 {
			t.Errorf("%s: %d, then %d", o.ID, first.Status, again.Status)
		}
		if storable := first.Status < 300 || first.Status == 404; storable && !replayed && !o.reads() {
			t.Errorf("%s: the repeat of %d was not recognised: %s", o.ID, first.Status, first.Body)
		}
		if !replayed {
			continue
		}
		kept++
		if o.Body && body != nil {
			other, _ := g.value("", o.declared.RequestBody.Value.Content.Get("application/json").Schema.Value, 0).(map[string]any)
			if r := d.call(t, o.Method, path, other, "Idempotency-Key", key, "X-Request-Id", named); r.Status != 422 &&
				r.Status != first.Status {
				t.Errorf("%s: another body under the key: %d %s", o.ID, r.Status, r.Body)
			}
		}
	}
	if kept < 20 {
		t.Errorf("only %d operations were repeated", kept)
	}
}

// reads reports whether the operation is a read although its method is not GET.
func (o operation) reads() bool {
	return slices.Contains([]string{"memory.search", "flows.simulate", "flows.validate", "trunks.route_test"}, o.ID)
}
