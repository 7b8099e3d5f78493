package api_test

import (
	"strings"
	"testing"

	"soniq/e2e/rig"
)

// personal calls the operations about the user of a credential: with a key of a user, of another user, of the organisation, of another
// organisation and with none.
func personal(t *testing.T, s *stage) {
	alice := s.ownKey(t, s.ids["/users"]["id"])
	var made struct{ ID string }
	s.a.want(t, 201, "POST", "/users", map[string]any{"email": "dora@example.com", "first_name": "Dora"}, &made)
	dora := s.ownKey(t, made.ID)
	nobody := desk{&rig.Client{T: t, Server: s.Server, Prefix: prefix}, s.doc}
	if len(s.doc.personal) < 6 {
		t.Fatalf("only %d operations about a user", len(s.doc.personal))
	}
	own := *s
	own.a, own.doc = alice, &document{operations: s.doc.personal, model: s.doc.model, router: s.doc.router}
	for _, o := range s.doc.personal {
		body := bodyFor(o)
		s.a.refused(t, 404, "not_found", o.Method, o.Path, body)
		nobody.refused(t, 401, "unauthenticated", o.Method, o.Path, body)
		own.a.refused(t, 400, "invalid_query", o.Method, o.Path+"?no_such_parameter=1", body)
		if o.Method != "GET" {
			continue
		}
		r := alice.want(t, 200, "GET", o.Path, nil, nil)
		if tag := r.Header.Get("ETag"); o.declared.Responses.Status(304) != nil {
			alice.want(t, 304, "GET", o.Path, nil, nil, "If-None-Match", tag)
			own.conflicts(t, o, o.Path)
		}
		other := dora.want(t, 200, "GET", o.Path, nil, nil)
		if strings.Contains(string(other.Body), s.ids["/users"]["id"]) {
			t.Errorf("%s shows another user: %s", o.ID, other.Body)
		}
	}
	alice.want(t, 200, "PATCH", "/me/settings", map[string]any{"language": "de", "forward": map[string]any{"no_answer_seconds": 12}}, nil)
	alice.want(t, 200, "PUT", "/me/preferences", map[string]any{"columns": []string{"mood"}}, nil)
	alice.want(t, 200, "PUT", "/users/"+s.ids["/users"]["id"]+"/dnd", map[string]any{"enabled": false}, nil)
	alice.refused(t, 403, "insufficient_scope", "PATCH", "/users/"+made.ID, map[string]any{"language": "de"})
	alice.refused(t, 403, "insufficient_scope", "PUT", "/users/"+made.ID+"/dnd", map[string]any{"enabled": true})
	var settings struct{ Language *string }
	if dora.want(t, 200, "GET", "/me/settings", nil, &settings); settings.Language != nil {
		t.Errorf("another user's language is %s", *settings.Language)
	}
	alice.want(t, 200, "PATCH", "/me/settings", map[string]any{"language": nil, "forward": map[string]any{"no_answer_seconds": nil}}, nil)
	s.a.want(t, 204, "DELETE", "/users/"+made.ID, nil, nil)
}

// ownKey makes a key with one scope for a user of organisation a.
func (s *stage) ownKey(t *testing.T, user string) desk {
	t.Helper()
	var made struct{ Key string }
	s.a.want(t, 201, "POST", "/api-keys", map[string]any{"name": "own", "scopes": []string{"calls:read"}, "user_id": user}, &made)
	return desk{&rig.Client{T: t, Server: s.Server, Org: s.a.Org, Key: made.Key, Prefix: prefix}, s.doc}
}
