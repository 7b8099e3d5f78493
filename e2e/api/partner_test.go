package api_test

import (
	"strings"
	"testing"

	"soniq/e2e/rig"
	"soniq/internal/platform/access"
)

// family is a partner with two children, and a key of the first child with every scope that a child may have.
type family struct {
	boss     desk
	one, two string
	child    desk
}

func newFamily(t *testing.T, s *rig.Server) family {
	t.Helper()
	st := &stage{Server: s, doc: readDocument(t, s)}
	f := family{boss: st.org(t, "live")}
	f.one, f.two = f.found(t, "One"), f.found(t, "Two")
	var scopes []string
	for _, scope := range access.All() {
		if !scope.Partner() {
			scopes = append(scopes, string(scope))
		}
	}
	var made struct{ Key string }
	f.boss.want(t, 201, "POST", "/partners/"+f.one+"/keys", map[string]any{"name": "all", "scopes": scopes}, &made)
	f.child = desk{&rig.Client{T: t, Server: s, Org: f.one, Key: made.Key, Prefix: prefix}, st.doc}
	return f
}

func (f family) found(t *testing.T, name string) string {
	t.Helper()
	var made struct{ ID string }
	f.boss.want(t, 201, "POST", "/partners", map[string]any{"name": name, "plan": "enterprise", "admin_email": strings.ToLower(name) + "@example.com",
		"country": "US", "call_recording_enabled": true}, &made)
	return made.ID
}

// in returns the partner acting in a child.
func (f family) in(child string) desk {
	c := *f.boss.Client
	c.As = child
	return desk{&c, f.boss.doc}
}

// TestPartner_ActsInNamedChildOnly creates one of everything in one child. A partner that acts in the other child
// reaches none of it by any operation.
func TestPartner_ActsInNamedChildOnly(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Flags: []string{"--transcriber", "off"}}, func(t *testing.T, s *rig.Server) {
		f := newFamily(t, s)
		st := &stage{Server: s, doc: f.boss.doc, ids: map[string]map[string]string{}, a: f.child, b: f.in(f.two)}
		st.furnish(t)
		st.ids["/partners"] = map[string]string{"id": f.one, "user_id": st.ids["/users"]["id"]}
		t.Run("another child's things are not found", func(t *testing.T) { tenants(t, st) })
		t.Run("the partner sees none of it without acting", func(t *testing.T) {
			st.b = f.boss
			st.nothingShown(t)
		})
		t.Run("acting in the child itself", func(t *testing.T) { f.acting(t, st) })
		t.Run("acting where nobody may", func(t *testing.T) { f.refusals(t, s) })
	})
}

// nothingShown reads everything that the partner may read about its children: it contains none of their content.
func (s *stage) nothingShown(t *testing.T) {
	for _, o := range s.doc.operations {
		if o.Method != "GET" || o.Rollout == "planned" || !strings.HasPrefix(o.Path, "/partners") {
			continue
		}
		r := s.b.want(t, 200, "GET", o.at(s.ids["/partners"]), nil, nil)
		for _, secret := range []string{s.call, s.ids["/recordings"]["id"], s.ids["/numbers"]["id"], "+12025550143", "A note.", "marked"} {
			if strings.Contains(string(r.Body), secret) {
				t.Errorf("%s shows the partner %q: %s", o.ID, secret, r.Body)
			}
		}
	}
}

func (f family) acting(t *testing.T, st *stage) {
	in := f.in(f.one)
	in.want(t, 200, "GET", "/calls/"+st.call, nil, nil)
	var me struct {
		Organization struct{ ID string }
		Credential   struct{ Kind string }
		Scopes       []string
		User         *struct{}
	}
	in.want(t, 200, "GET", "/me", nil, &me)
	if me.Organization.ID != f.one || me.Credential.Kind != "partner" || me.User != nil || strings.Contains(strings.Join(me.Scopes, " "), "partners:") {
		t.Errorf("acting in a child is %+v", me)
	}
	var stats struct {
		Calls      struct{ Total, Answered int }
		Recordings struct{ Count int }
	}
	f.boss.want(t, 200, "GET", "/partners/"+f.one+"/stats", nil, &stats)
	if stats.Calls.Total != 1 || stats.Calls.Answered != 1 || stats.Recordings.Count != 1 {
		t.Errorf("figures are %+v", stats)
	}
	var p struct {
		Usage struct {
			Users, Numbers, Devices int
			Storage                 float64 `json:"storage_gb"`
		}
	}
	f.boss.want(t, 200, "GET", "/partners/"+f.one, nil, &p)
	if p.Usage.Users != 3 || p.Usage.Numbers != 2 || p.Usage.Devices != 3 {
		t.Errorf("usage is %+v", p.Usage)
	}
	if fields := in.refused(t, 422, "validation_failed", "POST", "/api-keys", map[string]any{"name": "x", "kind": "partner", "scopes": []string{"calls:read"}}); fields["kind"] == "" {
		t.Errorf("a partner made a partner's key in a child: %v", fields)
	}
	in.refused(t, 403, "insufficient_scope", "GET", "/partners", nil)
}

func (f family) refusals(t *testing.T, s *rig.Server) {
	other := &stage{Server: s, doc: f.boss.doc}
	stranger := other.org(t, "live")
	foreign := family{boss: stranger}.found(t, "Three")
	for _, c := range []struct {
		in   desk
		code string
		want int
	}{
		{f.in(foreign), "not_found", 404}, {f.in(stranger.Org), "not_found", 404}, {f.in(f.boss.Org), "not_found", 404}, {f.in("org_nothing"), "not_found", 404},
		{desk{&rig.Client{T: t, Server: s, Key: f.child.Key, Prefix: prefix, As: f.two}, f.boss.doc}, "insufficient_scope", 403},
		{desk{&rig.Client{T: t, Server: s, Key: stranger.Key, Prefix: prefix, As: f.one}, f.boss.doc}, "not_found", 404},
	} {
		c.in.refused(t, c.want, c.code, "GET", "/users", nil)
		c.in.refused(t, c.want, c.code, "POST", "/users", map[string]any{"email": "x@example.com", "first_name": "X"})
	}
	f.boss.want(t, 200, "POST", "/partners/"+f.two+"/suspend", map[string]any{"reason": "unpaid"}, nil)
	f.in(f.two).refused(t, 403, "org_suspended", "GET", "/users", nil)
	f.boss.want(t, 200, "POST", "/partners/"+f.two+"/resume", map[string]any{}, nil)
	f.in(f.two).want(t, 200, "GET", "/users", nil, nil)
	f.boss.want(t, 202, "DELETE", "/partners/"+f.two+"?confirm=Two", nil, nil)
	f.in(f.two).refused(t, 403, "org_suspended", "GET", "/users", nil)
}
