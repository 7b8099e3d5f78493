package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"soniq/internal/platform/db"
)

// foreignEverywhere requests with a key of organisation b, with ids of a wherever a query or a body has ids. The answer is that for an id
// that no record has.
func foreignEverywhere(t *testing.T, s *stage) {
	foreign, own := s.foreignIDs(), s.ownIDs(t)
	asked := 0
	for _, o := range s.doc.operations {
		members := append(idParameters(o), idMembers(o)...)
		path, ok := o.atOwn(own)
		if o.Rollout == "planned" || len(members) == 0 || strings.Contains(o.Path, "/calls/{") || o.ID == "voicemail.update" {
			continue // the state of a call in progress is checked before the ids; organisation b has no call that left a message
		}
		if !ok {
			t.Errorf("%s takes ids, and organisation b has no record to try it with; furnish ownIDs with it", o.ID)
			continue
		}
		for _, member := range members {
			asked += s.likeUnknown(t, fitting(member[len(member)-1], foreign), func(id string) (string, []byte, int) {
				what := o.ID + " by " + strings.Join(member, ".")
				if member[0] == inQuery {
					r := s.b.call(t, o.Method, path+"?"+member[1]+"="+id, nil)
					return what, r.Body, r.Status
				}
				r := s.b.call(t, o.Method, path, requestWith(o, member, id))
				return what, r.Body, r.Status
			})
		}
	}
	if asked < 130 {
		t.Errorf("only %d requests", asked)
	}
	asked = 0
	for _, d := range s.destinations(t, own) {
		for kind, id := range map[string]string{"queue": s.ids["/queues"]["id"], "user": s.ids["/users"]["id"], "flow": s.ids["/flows"]["id"],
			"voicemail": s.ids["/users"]["id"]} {
			asked += s.likeUnknown(t, []string{id}, func(id string) (string, []byte, int) {
				r := s.b.call(t, d.method, d.path, d.body(kind+":"+id))
				return d.method + " " + d.path + " to " + kind, r.Body, r.Status
			})
		}
	}
	if asked < 40 {
		t.Errorf("only %d requests with destinations", asked)
	}
}

// destination is a request with a member that names a destination, such as queue:que_….
type destination struct {
	method, path string
	body         func(to string) map[string]any
}

// destinations returns requests of organisation b with every member that names a destination.
func (s *stage) destinations(t *testing.T, own map[string]string) []destination {
	name := func() string { return strings.ToLower(db.NewID("x")) }
	flow := func(to string, kind string, config map[string]any) map[string]any {
		return map[string]any{"name": name(), "entry": "n", "nodes": []any{map[string]any{"id": "n", "type": kind, "config": config,
			"next": map[string]string{"failed": "h"}}, map[string]any{"id": "h", "type": "hangup"}}}
	}
	one := map[string]any{"user_id": own["/users"]}
	return []destination{
		{"POST", "/flows", func(to string) map[string]any { return flow(to, "transfer", map[string]any{"to": to}) }},
		{"POST", "/flows", func(to string) map[string]any {
			return flow(to, "ai_agent", map[string]any{"instructions": "Help.", "handoff": to})
		}},
		{"POST", "/flows", func(to string) map[string]any {
			return map[string]any{"name": name(), "ivr": map[string]any{"greeting": "Press one.", "options": map[string]string{"1": to}, "timeout_to": "hangup"}}
		}},
		{"POST", "/flows", func(to string) map[string]any {
			return map[string]any{"name": name(), "hunt_group": map[string]any{"members": []any{one}, "no_answer_to": to}}
		}},
		{"PATCH", "/flows/" + own["/flows"], func(to string) map[string]any { return flow(to, "transfer", map[string]any{"to": to}) }},
		{"POST", "/flows/validate", func(to string) map[string]any { return flow(to, "transfer", map[string]any{"to": to}) }},
		{"PATCH", "/queues/" + own["/queues"], func(to string) map[string]any { return map[string]any{"overflow": map[string]any{"to": to}} }},
		{"PATCH", "/users/" + own["/users"], func(to string) map[string]any {
			return map[string]any{"forward": map[string]any{"always": to, "busy": nil, "no_answer": nil, "unreachable": nil}}
		}},
		{"PATCH", "/numbers/" + own["/numbers"], func(to string) map[string]any { return map[string]any{"fallback": to} }},
		{"POST", "/calls", func(to string) map[string]any { return map[string]any{"to": to, "user_id": own["/users"]} }},
		{"POST", "/callbacks", func(to string) map[string]any {
			return map[string]any{"to": to, "user_id": own["/users"],
				"scheduled_at": time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)}
		}},
		{"POST", "/sms", func(to string) map[string]any { return map[string]any{"to": to, "from": ownNumber, "body": "Crawl"} }},
	}
}

// likeUnknown asks with each foreign id, and with an unknown one in its place: both must be answered alike, and without ids of a.
func (s *stage) likeUnknown(t *testing.T, foreign []string, ask func(id string) (what string, body []byte, status int)) (asked int) {
	t.Helper()
	for _, id := range foreign {
		prefix, _, _ := strings.Cut(id, "_")
		what, unknown, wanted := ask(db.NewID(prefix))
		_, got, status := ask(id)
		if status == 429 || wanted == 429 {
			continue // a limit of the organisation, whatever the id
		}
		asked++
		refused := func(body []byte) string {
			var p struct{ Code string }
			_ = json.Unmarshal(body, &p)
			return p.Code
		}
		if status/100 != wanted/100 || refused(got) != refused(unknown) && refused(got) != "already_exists" {
			t.Errorf("%s %s of another organisation: %d %s; with an unknown one: %d %s", what, id, status, got, wanted, unknown)
		}
		for _, other := range foreign {
			if other != id && bytes.Contains(got, []byte(other)) {
				t.Errorf("%s %s of another organisation shows %s: %s", what, id, other, got)
			}
		}
	}
	return asked
}

// foreignIDs returns an id of each kind of organisation a.
func (s *stage) foreignIDs() (all []string) {
	one := map[string]string{}
	for _, values := range s.ids {
		for _, v := range values {
			if prefix, rest, _ := strings.Cut(v, "_"); len(rest) == 26 && !strings.HasPrefix(v, "org_") {
				one[prefix] = v
			}
		}
	}
	for _, prefix := range sortedKeys(one) {
		all = append(all, one[prefix])
	}
	return all
}

// kindOf has the prefix of the ids that a member holds, by the last word of its name before id.
var kindOf = map[string]string{"call": "call_", "user": "usr_", "agent": "usr_", "assignee": "usr_", "member": "usr_", "queue": "que_", "number": "num_", "flow": "flw_",
	"contact": "con_", "trunk": "trk_", "device": "dev_", "audio": "aud_", "from": "con_", "recording": "rec_"}

// fitting returns the ids of the kind that a member holds; all if its name does not tell.
func fitting(member string, foreign []string) []string {
	words := strings.Split(strings.TrimSuffix(strings.TrimSuffix(member, "s"), "_id"), "_")
	for _, id := range foreign {
		if kind := kindOf[words[len(words)-1]]; kind != "" && strings.HasPrefix(id, kind) {
			return []string{id}
		}
	}
	return foreign
}

// ownIDs creates records of organisation b that the paths of operations name.
func (s *stage) ownIDs(t *testing.T) map[string]string {
	t.Helper()
	own := map[string]string{}
	var made struct {
		ID     string
		Thread string `json:"conversation_id"`
	}
	add := func(path string, body map[string]any) {
		s.b.want(t, 201, "POST", path, body, &made)
		own[path] = made.ID
	}
	add("/users", map[string]any{"email": "crawl@example.org", "first_name": "Own", "extension": "733"})
	add("/queues", map[string]any{"name": "Crawl"})
	add("/contacts", map[string]any{"first_name": "Crawl"})
	add("/tags", map[string]any{"name": "crawl"})
	add("/trunks", map[string]any{"name": "Crawl", "host": "192.0.2.99"})
	add("/flows", map[string]any{"name": "Crawl", "entry": "h", "nodes": []any{map[string]any{"id": "h", "type": "hangup"}}})
	add("/numbers", map[string]any{"number": ownNumber, "trunk_id": own["/trunks"]})
	add("/numbers/providers", map[string]any{"provider": "telnyx", "api_key": "KEY0", "trunk_id": own["/trunks"], "url": "http://127.0.0.1:9/v2"})
	add("/devices", map[string]any{"user_id": own["/users"], "name": "Crawl", "kind": "softphone"})
	add("/webhooks", map[string]any{"url": "http://127.0.0.1:9/", "events": []string{"call.missed"}})
	add("/partners", map[string]any{"name": "Crawl child", "plan": "enterprise", "admin_email": "crawl.child@example.org"})
	s.b.want(t, 200, "PATCH", "/numbers/"+own["/numbers"], map[string]any{"sms_enabled": true}, nil)
	add("/sms", map[string]any{"from": ownNumber, "to": "ext:733", "body": "Crawl", "send_at": time.Now().AddDate(0, 0, 1).UTC().Format(time.RFC3339)})
	own["/sms/conversations"] = made.Thread
	return own
}

// ownNumber is the number of organisation b.
const ownNumber = "+12025550166"

// atOwn fills the path with records of organisation b. ok is false if it needs a record that there is not.
func (o operation) atOwn(own map[string]string) (path string, ok bool) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(o.Path, "/"), "/")
	second, _, _ := strings.Cut(rest, "/")
	values := map[string]string{"id": cmp.Or(own["/"+first+"/"+second], own["/"+first]), "user_id": own["/users"], "phone": "+12025550170"}
	for _, name := range o.Parameters {
		if values[name] == "" {
			return "", false
		}
	}
	return o.at(values), true
}

// inQuery and element are parts of the path of a member: a parameter of the query, and an element of a list.
const (
	inQuery = "query"
	element = "[]"
)

// idParameters returns the parameters of the query that have ids.
func idParameters(o operation) (all [][]string) {
	for _, p := range o.declared.Parameters {
		if p.Value.In == "query" && idName.MatchString(p.Value.Name) {
			all = append(all, []string{inQuery, p.Value.Name})
		}
	}
	return all
}

// idMembers returns the members of the body, and of objects and lists in it, that have ids.
func idMembers(o operation) (all [][]string) {
	if s := o.bodySchema(); s != nil {
		membersOf(s, nil, func(at []string) { all = append(all, slices.Clone(at)) })
	}
	return all
}

func membersOf(s *openapi3.Schema, at []string, found func([]string)) {
	if len(at) > 5 {
		return
	}
	for _, name := range sortedKeys(s.Properties) {
		here := append(slices.Clone(at), name)
		if idName.MatchString(name) && name != "id" { // the id of a node belongs to the flow
			found(here)
		}
		membersOf(s.Properties[name].Value, here, found)
	}
	if s.Items != nil {
		membersOf(s.Items.Value, append(slices.Clone(at), element), found)
	}
	for _, option := range slices.Concat(s.AnyOf, s.OneOf, s.AllOf) {
		membersOf(option.Value, at, found)
	}
}

// memberOf returns the schema of a member of an object or a list, through alternatives.
func memberOf(s *openapi3.Schema, name string) *openapi3.Schema {
	if name == element && s.Items != nil {
		return s.Items.Value
	}
	if p, ok := s.Properties[name]; ok {
		return p.Value
	}
	for _, option := range slices.Concat(s.AnyOf, s.OneOf, s.AllOf) {
		if found := memberOf(option.Value, name); found != nil {
			return found
		}
	}
	return nil
}

func (o operation) bodySchema() *openapi3.Schema {
	if o.declared.RequestBody == nil {
		return nil
	}
	for kind, content := range o.declared.RequestBody.Value.Content {
		if strings.HasSuffix(kind, "json") && content.Schema != nil {
			return content.Schema.Value
		}
	}
	return nil
}

// required holds members that requests need beside the generated ones.
var required = map[string]any{"name": "Crawl", "email": "x@example.org", "first_name": "X", "url": "http://127.0.0.1:9/", "events": []string{"call.ended"}, "to": "ext:999",
	"number": "+12025550169", "kind": "softphone", "body": "Crawl", "scopes": []string{"calls:read"}, "query": "x", "text": "x", "since": "2026-01-01",
	"until": "2026-01-02", "no_answer_to": "hangup", "entry": "n", "format": "csv", "host": "192.0.2.98", "phone": "+12025550170", "numbers": []string{"+12025550168"}, "carrier": "Old Co", "from": "+12025550169"}

// requestWith returns a body with an id in one of its members.
func requestWith(o operation, member []string, id string) map[string]any {
	s, g := o.bodySchema(), newGenerator(1)
	body := map[string]any{}
	if b, ok := bodies[o.ID].(map[string]any); ok {
		maps.Copy(body, b)
	}
	fill(body, s, g)
	if _, ok := body["email"]; ok {
		body["email"] = fmt.Sprintf("%s@example.org", strings.ToLower(db.NewID("u")))
	}
	if _, ok := body["name"]; ok {
		body["name"] = strings.ToLower(db.NewID("x"))[:20] + id[len(id)-4:]
	}
	into, inner := body, s
	for i, name := range member[:len(member)-1] {
		if inner = memberOf(inner, name); name == element {
			continue
		}
		deeper := map[string]any{}
		if object := inner; member[i+1] == element {
			into[name] = []any{deeper}
			fill(deeper, memberOf(object, element), g)
		} else {
			into[name] = deeper
			fill(deeper, object, g)
		}
		into = deeper
	}
	last := member[len(member)-1]
	if strings.HasSuffix(last, "s") && memberOf(inner, last).Type.Includes("array") {
		into[last] = []string{id}
	} else {
		into[last] = id
	}
	return body
}

// fill adds the members that an object needs.
func fill(object map[string]any, s *openapi3.Schema, g *generator) {
	for _, name := range s.Required {
		if v, ok := required[name]; ok {
			object[name] = v
		} else if object[name] == nil {
			object[name] = g.value(name, memberOf(s, name), 3)
		}
	}
}
