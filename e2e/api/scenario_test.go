package api_test

import (
	"testing"
	"time"

	"soniq/e2e/rig"
)

// scenario reads all records of organisation a, and creates, changes and deletes one record of each kind. It checks
// each response against the description.
func scenario(t *testing.T, s *stage) {
	s.export(t, "/memory/exports", map[string]any{"phone": "+12025550177"}) // an erasure has deleted the file of the first
	for _, o := range s.doc.operations {
		if o.Method == "GET" && o.Rollout != "planned" {
			values, _ := s.of(o)
			if o.ID == "contacts.lookup" { // it takes a number or an address
				s.a.refused(t, 404, "contact_not_found", "GET", o.at(values)+"?phone=%2B12025550199", nil)
				continue
			}
			s.a.want(t, 200, "GET", o.at(values)+asked[o.ID], nil, nil)
		}
	}
	for _, format := range []string{"text", "vtt", "srt", "json"} {
		s.a.want(t, 200, "GET", "/calls/"+s.call+"/transcript?format="+format, nil, nil)
	}
	s.a.want(t, 200, "GET", "/calls/"+s.call+"?expand=legs,summary,transcript,notes", nil, nil)
	s.a.want(t, 200, "GET", "/calls?status=completed&status=missed&include_total=true&has_recording=true&since=2026-01-01", nil, nil)
	s.a.want(t, 200, "POST", "/memory/search", map[string]any{"query": "call", "limit": 3}, nil)
	d := s.org(t, "live")
	s.lifeOfPeople(t, d)
	s.lifeOfNumbers(t, d)
	s.lifeOfQueues(t, d)
	s.lifeOfFlows(t, d)
	s.lifeOfWebhooks(t, d)
	s.lifeOfKeys(t, d)
	d.want(t, 200, "PATCH", "/organization", map[string]any{"name": "Renamed", "timezone": "Europe/Berlin"}, nil)
	d.refused(t, 422, "validation_failed", "PATCH", "/organization", map[string]any{"timezone": "Mars/Olympus", "country": "XX"})
}

func (s *stage) lifeOfPeople(t *testing.T, d desk) {
	var u, phone struct{ ID string }
	r := d.want(t, 201, "POST", "/users", map[string]any{"email": "lena@example.org", "first_name": "Lena", "last_name": "Vogt"}, &u)
	if r.Header.Get("Location") != prefix+"/users/"+u.ID || r.Header.Get("ETag") == "" {
		t.Errorf("new user: Location %q, ETag %q", r.Header.Get("Location"), r.Header.Get("ETag"))
	}
	tag := d.want(t, 200, "GET", "/users/"+u.ID, nil, nil).Header.Get("ETag")
	d.want(t, 200, "PATCH", "/users/"+u.ID, map[string]any{"last_name": "Vogel", "timezone": nil}, nil, "If-Match", tag)
	d.refused(t, 412, "version_conflict", "PATCH", "/users/"+u.ID, map[string]any{"last_name": "Vogt"}, "If-Match", tag)
	d.want(t, 200, "PUT", "/users/"+u.ID+"/dnd", map[string]any{"enabled": true}, nil)
	d.want(t, 200, "PUT", "/users/"+u.ID+"/dnd", map[string]any{"enabled": false}, nil)
	d.want(t, 200, "POST", "/users/"+u.ID+"/sip-credentials/rotate", map[string]any{}, nil)
	d.want(t, 201, "POST", "/devices", map[string]any{"user_id": u.ID, "name": "Mobile", "kind": "mobile"}, &phone)
	d.want(t, 200, "PATCH", "/devices/"+phone.ID, map[string]any{"name": "Old mobile", "status": "disabled"}, nil)
	d.want(t, 200, "GET", "/users/"+u.ID, nil, nil)
	d.want(t, 204, "DELETE", "/devices/"+phone.ID, nil, nil)
	d.want(t, 204, "DELETE", "/users/"+u.ID, nil, nil)
	d.want(t, 200, "GET", "/users?status=removed", nil, nil)
}

func (s *stage) lifeOfFlows(t *testing.T, d desk) {
	u := d.AddUser("Flora")
	var flow, trunk, number struct{ ID string }
	graph := map[string]any{"name": "Main", "entry": "hi", "nodes": []any{
		map[string]any{"id": "hi", "type": "play", "config": map[string]any{"text": "Welcome."}, "next": map[string]string{"done": "ada"}},
		map[string]any{"id": "ada", "type": "transfer", "config": map[string]any{"to": "user:" + u.ID}, "next": map[string]string{"failed": "mail"}},
		map[string]any{"id": "mail", "type": "voicemail", "config": map[string]any{"mailbox": u.ID}}}}
	d.want(t, 200, "POST", "/flows/validate", graph, nil)
	d.want(t, 201, "POST", "/flows", graph, &flow)
	d.want(t, 200, "POST", "/flows/"+flow.ID+"/simulate", map[string]any{"from": "+12025550199", "inputs": []string{"failed"}}, nil)
	d.want(t, 201, "POST", "/trunks", map[string]any{"name": "Line", "host": "192.0.2.78"}, &trunk)
	d.refused(t, 422, "validation_failed", "POST", "/numbers", map[string]any{"number": "+12025550167", "trunk_id": trunk.ID, "flow_id": flow.ID})
	d.want(t, 200, "POST", "/flows/"+flow.ID+"/publish", map[string]any{"comment": "first"}, nil)
	d.want(t, 201, "POST", "/numbers", map[string]any{"number": "+12025550167", "trunk_id": trunk.ID, "flow_id": flow.ID}, &number)
	d.want(t, 200, "GET", "/flows?number_id="+number.ID, nil, nil)
	d.want(t, 200, "PATCH", "/flows/"+flow.ID, map[string]any{"language": "en"}, nil)
	d.want(t, 200, "POST", "/flows/"+flow.ID+"/publish", map[string]any{}, nil)
	d.want(t, 200, "POST", "/flows/"+flow.ID+"/rollback", map[string]any{"version": 1}, nil)
	d.refused(t, 409, "in_use", "DELETE", "/flows/"+flow.ID, nil)
	d.want(t, 200, "PATCH", "/numbers/"+number.ID, map[string]any{"flow_id": nil}, nil)
	d.want(t, 204, "DELETE", "/flows/"+flow.ID, nil, nil)
	d.refused(t, 409, "invalid_state", "POST", "/devices/"+device(t, d, u.ID)+"/resync", map[string]any{})
}

// device returns the id of a user's phone.
func device(t *testing.T, d desk, user string) string {
	t.Helper()
	var page struct{ Data []struct{ ID string } }
	d.want(t, 200, "GET", "/devices?user_id="+user, nil, &page)
	return page.Data[0].ID
}

func (s *stage) lifeOfQueues(t *testing.T, d desk) {
	u := d.AddUser("Queuer")
	var queue, other struct{ ID string }
	d.want(t, 201, "POST", "/queues", map[string]any{"name": "Sales", "extension": "700", "strategy": "ring_all"}, &queue)
	d.want(t, 201, "POST", "/queues", map[string]any{"name": "Night", "overflow": map[string]any{"to": "queue:" + queue.ID}}, &other)
	d.refused(t, 409, "extension_taken", "PATCH", "/queues/"+other.ID, map[string]any{"extension": u.Extension})
	tag := d.want(t, 200, "GET", "/queues/"+queue.ID, nil, nil).Header.Get("ETag")
	d.want(t, 200, "PATCH", "/queues/"+queue.ID, map[string]any{"max_callers": 5}, nil, "If-Match", tag)
	d.refused(t, 412, "version_conflict", "PATCH", "/queues/"+queue.ID, map[string]any{"max_callers": 6}, "If-Match", tag)
	d.want(t, 201, "POST", "/queues/"+queue.ID+"/members", map[string]any{"user_id": u.ID, "skills": map[string]int{"french": 3}}, nil)
	d.want(t, 200, "GET", "/queues/"+queue.ID+"/members?signed_in=true&presence=offline", nil, nil)
	d.want(t, 200, "PATCH", "/queues/"+queue.ID+"/members/"+u.ID, map[string]any{"paused": true, "pause_reason": "lunch"}, nil)
	d.want(t, 200, "PUT", "/agents/"+u.ID+"/queues/"+queue.ID, map[string]any{"signed_in": true, "paused": false}, nil)
	d.want(t, 200, "PUT", "/agents/"+u.ID+"/presence", map[string]any{"status": "away", "reason": "lunch"}, nil)
	d.want(t, 200, "GET", "/agents/"+u.ID+"/stats", nil, nil)
	d.want(t, 200, "GET", "/queues?include=stats", nil, nil)
	d.want(t, 204, "DELETE", "/queues/"+queue.ID+"/members/"+u.ID, nil, nil)
	d.refused(t, 409, "in_use", "DELETE", "/queues/"+queue.ID, nil)
	d.want(t, 204, "DELETE", "/queues/"+queue.ID+"?move_to="+other.ID, nil, nil)
	d.want(t, 204, "DELETE", "/queues/"+other.ID, nil, nil)
}

func (s *stage) lifeOfNumbers(t *testing.T, d desk) {
	var trunk, number struct{ ID string }
	d.want(t, 201, "POST", "/trunks", map[string]any{"name": "Line", "kind": "register", "host": "192.0.2.77", "username": "u", "password": "secret"}, &trunk)
	d.want(t, 200, "PATCH", "/trunks/"+trunk.ID, map[string]any{"max_channels": 10}, nil)
	d.want(t, 201, "POST", "/numbers", map[string]any{"number": "(202) 555-0166", "trunk_id": trunk.ID}, &number)
	d.want(t, 200, "PATCH", "/numbers/"+number.ID, map[string]any{"label": "Desk"}, nil)
	d.refused(t, 409, "number_unavailable", "POST", "/numbers", map[string]any{"number": "+12025550166", "trunk_id": trunk.ID})
	d.refused(t, 409, "in_use", "DELETE", "/trunks/"+trunk.ID, nil)
	d.refused(t, 422, "validation_failed", "DELETE", "/numbers/"+number.ID, nil)
	d.want(t, 204, "DELETE", "/numbers/"+number.ID+"?confirm=%2B12025550166", nil, nil)
	d.want(t, 204, "DELETE", "/trunks/"+trunk.ID, nil, nil)
}

func (s *stage) lifeOfWebhooks(t *testing.T, d desk) {
	hooks := d.Hook(nil)
	path := "/webhooks/" + hooks.ID
	d.want(t, 200, "PATCH", path, map[string]any{"description": "a receiver", "headers": map[string]string{"x-tenant": "7"}}, nil)
	d.want(t, 200, "POST", path+"/test", map[string]any{"event": "call.ended"}, nil)
	s.person(t, d, "hooked@example.org")
	hooks.Wait("user.created", 20*time.Second, nil)
	var log page
	for len(log.Data) == 0 {
		d.want(t, 200, "GET", path+"/deliveries", nil, &log)
	}
	one := path + "/deliveries/" + log.Data[0]["id"].(string)
	d.want(t, 200, "GET", one, nil, nil)
	before := len(hooks.Events())
	d.want(t, 202, "POST", one+"/replay", map[string]any{}, nil)
	rig.Until(t, "replay", 20*time.Second, func() bool { return len(hooks.Events()) > before })
	var again struct{ Queued int }
	before = len(hooks.Events())
	d.want(t, 202, "POST", path+"/replay", map[string]any{"since": "2020-01-01", "only_failed": false}, &again)
	rig.Until(t, "replay of all", 20*time.Second, func() bool { return len(hooks.Events()) >= before+again.Queued })
	d.want(t, 200, "POST", path+"/rotate-secret", map[string]any{"grace_seconds": 0}, nil)
	d.want(t, 200, "GET", "/webhooks/events", nil, nil)
	d.want(t, 204, "DELETE", path, nil, nil)
}

func (s *stage) lifeOfKeys(t *testing.T, d desk) {
	var key struct{ ID, Key string }
	d.want(t, 201, "POST", "/api-keys", map[string]any{"name": "k", "scopes": []string{"calls:read"}, "expires_at": "2099-01-01T00:00:00Z"}, &key)
	weak := desk{&rig.Client{T: t, Server: s.Server, Key: key.Key, Prefix: prefix}, s.doc}
	weak.want(t, 200, "GET", "/calls", nil, nil)
	var next struct{ ID, Key string }
	d.want(t, 201, "POST", "/api-keys/"+key.ID+"/rotate", map[string]any{"grace_seconds": 60}, &next)
	weak.want(t, 200, "GET", "/calls", nil, nil) // for another minute
	d.want(t, 204, "DELETE", "/api-keys/"+key.ID, nil, nil)
	weak.refused(t, 401, "key_revoked", "GET", "/calls", nil)
	weak.Key = next.Key
	weak.want(t, 200, "GET", "/me", nil, nil)
}
