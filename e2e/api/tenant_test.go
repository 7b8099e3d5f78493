package api_test

import (
	"bytes"
	"strings"
	"testing"
)

// bodies holds the bodies of operations with parameters. The others accept an empty object.
var bodies = map[string]any{
	"users.dnd":    map[string]any{"enabled": true},
	"users.update": map[string]any{"first_name": "Mallory"}, "devices.update": map[string]any{"name": "Mallory's"},
	"numbers.update": map[string]any{"label": "Mallory's"}, "trunks.update": map[string]any{"host": "198.51.100.66"},
	"webhooks.update": map[string]any{"description": "Mallory's"}, "webhooks.replay": map[string]any{"since": "2020-01-01"},
	"calls.transfer": map[string]any{"to": "ext:101"}, "calls.participants.add": map[string]any{"to": "ext:101"},
	"calls.dtmf": map[string]any{"digits": "1"}, "calls.note": map[string]any{"body": "Mallory's"}, "calls.tag": map[string]any{"tag": "mallory"},
	"calls.disposition": map[string]any{"code": "mallory"},
	"calls.announce":    map[string]any{"text": "Mallory"}, "calls.monitor.update": map[string]any{"mode": "listen"},
	"partners.suspend": map[string]any{"reason": "Mallory"}, "partners.keys.create": map[string]any{"name": "mallory", "scopes": []string{"calls:read"}},
	"partners.users.create": map[string]any{"email": "mallory@example.org", "first_name": "Mallory"},
	"tags.update":           map[string]any{"name": "mallory"},
	"queues.update":         map[string]any{"name": "Mallory's"},
	"queues.members.add":    map[string]any{"user_id": "usr_x"}, "queues.members.update": map[string]any{"paused": true},
	"queues.calls.update": map[string]any{"position": 1}, "agents.presence.set": map[string]any{"status": "offline"},
	"agents.queues.set": map[string]any{"signed_in": false},
	"flows.update":      map[string]any{"name": "Mallory's"}, "flows.rollback": map[string]any{"version": 1}, "flows.simulate": map[string]any{"from": "anonymous"},
	"contacts.merge": map[string]any{"from_id": "con_x"}, "contacts.notes.add": map[string]any{"body": "Mallory's"},
	"sms.conversations.update": map[string]any{"status": "closed"},
}

// asked holds the query that some read operations need.
var asked = map[string]string{"contacts.screen_pop": "?phone=%2B12025550199"}

// tenants requests all records of organisation a with a key of organisation b: by id in the path, in bodies, and in
// lists.
func tenants(t *testing.T, s *stage) {
	before := s.everything(t)
	for _, o := range s.doc.operations {
		if len(o.Parameters) == 0 || o.Rollout == "planned" {
			continue
		}
		values, ok := s.of(o)
		if !ok {
			t.Errorf("%s: this test knows nothing of organisation a to ask for; furnish the stage with it", o.ID)
			continue
		}
		if o.ID == "memory.caller" {
			s.stranger(t, o, values)
			continue
		}
		// numbers belong to no organisation: b erases and writes its own facts about them
		if o.ID == "memory.erase" || o.ID == "memory.facts.add" {
			s.b.call(t, o.Method, o.at(values), map[string]any{})
			continue
		}
		var body any
		if o.Body {
			body = map[string]any{}
		}
		if b, ok := bodies[o.ID]; ok {
			body = b
		}
		if s.b.As != "" && strings.HasPrefix(o.Path, "/partners") { // partner operations are refused to a partner that acts in a child
			s.b.refused(t, 403, "insufficient_scope", o.Method, o.at(values), body)
			continue
		}
		code := "not_found"
		if o.ID == "recordings.audio" {
			s.b.refused(t, 404, code, o.Method, o.at(values)+"?channel=caller", nil)
		}
		s.b.refused(t, 404, code, o.Method, o.at(values), body)
		if d := values["delivery_id"]; d != "" && strings.Contains(o.Path, "{delivery_id}") {
			s.foreignDelivery(t, o, d, body)
		}
	}
	s.foreignInBodies(t)
	s.nothingListed(t)
	if after := s.everything(t); !bytes.Equal(before, after) {
		t.Errorf("organisation b changed a's things.\nbefore: %s\nafter:  %s", before, after)
	}
}

// foreignDelivery requests a delivery of a through a webhook of b.
func (s *stage) foreignDelivery(t *testing.T, o operation, delivery string, body any) {
	t.Helper()
	var own struct{ ID string }
	s.b.want(t, 201, "POST", "/webhooks", map[string]any{"url": "http://127.0.0.1:9/", "events": []string{"call.missed"}}, &own)
	s.b.refused(t, 404, "not_found", o.Method, o.at(map[string]string{"id": own.ID, "delivery_id": delivery}), body)
	s.b.want(t, 204, "DELETE", "/webhooks/"+own.ID, nil, nil)
}

// stranger requests the memory of a number. Numbers belong to no organisation, so the result exists and is empty.
func (s *stage) stranger(t *testing.T, o operation, values map[string]string) {
	t.Helper()
	var mine, theirs struct {
		TotalCalls  int   `json:"total_calls"`
		RecentCalls []any `json:"recent_calls"`
	}
	s.a.want(t, 200, "GET", o.at(values), nil, &mine)
	r := s.b.want(t, 200, "GET", o.at(values), nil, &theirs)
	if theirs.TotalCalls != 0 || len(theirs.RecentCalls) != 0 || bytes.Contains(r.Body, []byte(s.call)) {
		t.Errorf("b sees what a remembers of %s: %s", s.phone, r.Body)
	}
}

// foreignInBodies refers to records of a in request bodies of b.
func (s *stage) foreignInBodies(t *testing.T) {
	user, trunk := s.ids["/users"]["id"], s.ids["/trunks"]["id"]
	var own struct{ ID string }
	s.b.want(t, 201, "POST", "/users", map[string]any{"email": "own@example.org", "first_name": "Own"}, &own)
	for _, c := range []struct {
		method, path string
		body         map[string]any
	}{
		{"POST", "/devices", map[string]any{"user_id": user, "name": "x", "kind": "softphone"}},
		{"POST", "/numbers", map[string]any{"number": "+12025550177", "user_id": user}},
		{"POST", "/numbers", map[string]any{"number": "+12025550178", "trunk_id": trunk}},
		{"POST", "/api-keys", map[string]any{"name": "x", "scopes": []string{"calls:read"}, "user_id": user}},
		{"PATCH", "/users/" + own.ID, map[string]any{"outbound_number_id": s.ids["/numbers"]["id"]}},
		{"PATCH", "/users/" + own.ID, map[string]any{"queue_ids": []string{s.ids["/queues"]["id"]}}},
		{"POST", "/queues", map[string]any{"name": "x", "overflow": map[string]any{"to": "queue:" + s.ids["/queues"]["id"]}}},
		{"POST", "/queues", map[string]any{"name": "x", "overflow": map[string]any{"to": "user:" + user}}},
		{"POST", "/flows", map[string]any{"name": "x", "hunt_group": map[string]any{"members": []any{map[string]string{"user_id": user}}, "no_answer_to": "hangup"}}},
		{"POST", "/flows", map[string]any{"name": "x", "entry": "q", "nodes": []any{map[string]any{"id": "q", "type": "queue", "config": map[string]string{"queue_id": s.ids["/queues"]["id"]},
			"next": map[string]string{"timeout": "h", "overflow": "h"}}, map[string]any{"id": "h", "type": "hangup"}}}},
		{"DELETE", "/users/" + own.ID + "?reassign_to=" + user, nil},
		{"POST", "/users/" + own.ID + "/sip-credentials/rotate", map[string]any{"device_id": s.ids["/devices"]["id"]}},
	} {
		var body any
		if c.body != nil {
			body = c.body
		}
		if r := s.b.call(t, c.method, c.path, body); r.Status != 422 && r.Status != 404 {
			t.Errorf("%s %s with a's id in %v: %d %s", c.method, c.path, c.body, r.Status, r.Body)
		}
	}
}

// nothingListed reads every list with b's key: none contains an id of a.
func (s *stage) nothingListed(t *testing.T) {
	for _, o := range s.doc.operations {
		if o.Method != "GET" || len(o.Parameters) > 0 || o.Rollout == "planned" {
			continue
		}
		if s.b.As != "" && strings.HasPrefix(o.Path, "/partners") {
			s.b.refused(t, 403, "insufficient_scope", "GET", o.Path, nil)
			continue
		}
		if o.ID == "contacts.lookup" {
			s.b.refused(t, 404, "contact_not_found", "GET", o.Path+"?phone=%2B12025550199", nil)
			continue
		}
		if s.b.As != "" && o.ID == "audit.list" { // it lists the requests refused above, which contain ids of a
			continue
		}
		r := s.b.want(t, 200, "GET", o.Path+asked[o.ID], nil, nil)
		for kind, values := range s.ids {
			for _, v := range values {
				if strings.Contains(v, "_") && bytes.Contains(r.Body, []byte(v)) {
					t.Errorf("%s shows b a's %s %s", o.ID, kind, v)
				}
			}
		}
	}
	r := s.b.want(t, 200, "POST", "/memory/search", map[string]any{"query": "call"}, nil)
	if bytes.Contains(r.Body, []byte(s.call)) {
		t.Errorf("memory search shows b a's call: %s", r.Body)
	}
}

// everything returns all records of organisation a as the API shows them. It omits usage and signed addresses, which
// change by themselves.
func (s *stage) everything(t *testing.T) []byte {
	t.Helper()
	var all bytes.Buffer
	for _, path := range []string{"/users?fields=name,extension,status,dnd", "/devices?fields=name,user_id,sip", "/numbers", "/trunks?fields=name,host,enabled,allowed_ips",
		"/webhooks?fields=url,description,status,events", "/api-keys?fields=name,scopes,revoked_at", "/calls", "/cdr",
		"/recordings?fields=status,sha256", "/transcripts", "/organization", "/queues", "/agents?fields=name,availability,queues", "/flows", "/voicemail"} {
		all.Write(s.a.want(t, 200, "GET", path, nil, nil).Body)
	}
	return all.Bytes()
}
