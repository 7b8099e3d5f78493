package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"soniq/e2e/rig"
	"soniq/internal/platform/access"
)

// scopes calls every operation with a key of each single scope.
func scopes(t *testing.T, s *stage) {
	for _, scope := range access.All() {
		with := s.desk(s.a.Org, "live", string(scope))
		for _, o := range s.doc.operations {
			r := with.call(t, o.Method, o.at(nowhere), nil)
			if o.metBy(string(scope)) {
				if r.Status == 403 || r.Status == 401 {
					t.Errorf("%s needs %s, but with %s: %d %s", o.ID, o.Scope, scope, r.Status, r.Body)
				}
				continue
			}
			lacking(t, o, string(scope), r)
		}
	}
}

// lacking checks the refusal for a missing scope: it names the scope that is needed.
func lacking(t *testing.T, o operation, scope string, r rig.Response) {
	t.Helper()
	var p struct {
		Code     string   `json:"code"`
		Required []string `json:"required_scopes"`
	}
	_ = json.Unmarshal(r.Body, &p)
	if r.Status != 403 || p.Code != "insufficient_scope" {
		t.Errorf("%s needs %s, but with %s alone: %d %s", o.ID, o.Scope, scope, r.Status, r.Body)
		return
	}
	for _, set := range o.Need {
		for _, needed := range set {
			if needed != scope && !slices.Contains(p.Required, needed) {
				t.Errorf("%s with %s: required_scopes %v leave out %s", o.ID, scope, p.Required, needed)
			}
		}
	}
	if challenge := r.Header.Get("WWW-Authenticate"); !strings.Contains(challenge, `error="insufficient_scope"`) {
		t.Errorf("%s with %s: challenge %q", o.ID, scope, challenge)
	}
}

// contract names the twenty published operations.
var contract = strings.Fields(`calls.list calls.live calls.get calls.create calls.end calls.hold calls.unhold calls.transfer calls.dtmf
	calls.note calls.tag calls.recording cdr.list queues.list queues.stats agents.list contacts.lookup memory.search
		sms.create partners.create`)

// published checks that each published operation exists, and that an operation that is not built answers 501 to a
// caller with its scope.
func published(t *testing.T, s *stage) {
	known := map[string]operation{}
	for _, o := range s.doc.operations {
		if _, twice := known[o.ID]; twice {
			t.Errorf("operation %s is declared twice", o.ID)
		}
		known[o.ID] = o
		switch o.Rollout {
		case "live", "beta":
		case "planned":
			s.a.refused(t, 501, "not_enabled", o.Method, o.at(nowhere), nil)
			if o.Method == "POST" {
				s.a.refused(t, 501, "not_enabled", o.Method, o.at(nowhere), map[string]any{"whatever": 1})
			}
		default:
			t.Errorf("%s has x-rollout %q", o.ID, o.Rollout)
		}
	}
	if len(contract) != 20 {
		t.Fatalf("%d published operations in this test", len(contract))
	}
	for _, id := range contract {
		if _, ok := known[id]; !ok {
			t.Errorf("published operation %s is not declared", id)
		}
	}
}

// anonymous sends requests without a credential, with a malformed one and with an unknown one.
func anonymous(t *testing.T, s *stage) {
	unknown := strings.Replace(s.a.Key, s.a.Key[len(s.a.Key)-8:], "00000000", 1)
	for _, key := range []string{"", "nonsense", unknown} {
		d := desk{&rig.Client{T: t, Server: s.Server, Key: key, Prefix: prefix}, s.doc}
		for _, o := range s.doc.operations {
			if o.Scope == "none" {
				continue
			}
			r := d.call(t, o.Method, o.at(nowhere), nil)
			if p := problemOf(r); r.Status != 401 || p.Code != "unauthenticated" {
				t.Errorf("%s with credential %q: %d %s", o.ID, key, r.Status, r.Body)
			}
			if r.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with credential %q: no challenge", o.ID, key)
			}
		}
	}
}

// environments uses a sandbox key on live, and a live key on the sandbox.
func environments(t *testing.T, s *stage) {
	test := s.desk(s.a.Org, "test", "all")
	test.want(t, 200, "GET", "/me", nil, nil)
	for _, d := range []struct{ key, prefix string }{{test.Key, prefix}, {test.Key, "/v1"}, {s.a.Key, "/sandbox/v1"}} {
		wrong := desk{&rig.Client{T: t, Server: s.Server, Key: d.key, Prefix: d.prefix}, s.doc}
		for _, o := range s.doc.operations {
			if o.Scope != "none" {
				wrong.refused(t, 403, "wrong_environment", o.Method, o.at(nowhere), nil)
			}
		}
	}
	for _, p := range []string{prefix, "/v1"} { // the same in both environments
		same := desk{&rig.Client{T: t, Server: s.Server, Key: s.a.Key, Prefix: p}, s.doc}
		same.want(t, 200, "GET", "/users", nil, nil)
	}
	for _, o := range s.doc.sandbox { // unknown to live keys, known to sandbox keys
		s.a.refused(t, 404, "not_found", o.Method, o.at(nowhere), map[string]any{})
		if r := test.call(t, o.Method, o.at(nowhere)+"?no_such_parameter=1", map[string]any{}); problemOf(r).Code != "invalid_query" {
			t.Errorf("%s in the sandbox: %d %s", o.ID, r.Status, r.Body)
		}
	}
	var twin struct{ Data []struct{ ID string } }
	if test.want(t, 200, "GET", "/users", nil, &twin); len(twin.Data) != 0 {
		t.Errorf("the sandbox shows live users: %v", twin.Data)
	}
}
