package attack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"soniq/e2e/rig"
	"soniq/internal/platform/access"
)

// grantStage has a partner organisation, its child, and an organisation of strangers, each with a key of the operator that may do
// everything.
type grantStage struct {
	*rig.Server
	t                    *testing.T
	partner, child, none *rig.Client
	n                    int
}

// giver is a credential of the partner organisation.
type giver struct {
	*rig.Client
	name   string
	scopes []access.Scope
	role   string
	acts   bool // it may act in the child organisation
}

// holds is the rule, written again: every scope of the role, and a rank not below it.
func (g giver) holds(role string) bool {
	return slices.Index(access.Roles, role) <= slices.Index(access.Roles, g.role) &&
		len(access.Intersect(access.RoleScopes(role), g.scopes)) == len(access.RoleScopes(role))
}

// operations returns the granting operations of the API description: the ID, and "METHOD /path".
func (s *grantStage) operations() map[string]string {
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	at := *s.partner
	at.Prefix = ""
	if err := json.Unmarshal(at.Do("GET", "/openapi.json", nil).Body, &doc); err != nil {
		s.t.Fatal(err)
	}
	all := map[string]string{}
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			var o struct {
				ID     string    `json:"operationId"`
				Grants *[]string `json:"x-grants"`
			}
			if json.Unmarshal(raw, &o) == nil && o.Grants != nil {
				all[o.ID] = strings.ToUpper(method) + " " + strings.TrimPrefix(path, "/api/v1")
			}
		}
	}
	return all
}

func newGrantStage(t *testing.T) *grantStage {
	s := &grantStage{Server: rig.Shared(t, rig.Options{}), t: t}
	org := func() *rig.Client {
		id := s.Command("admin", "orgs", "create", "--name", "Org of "+t.Name(), "--country", "US")
		return &rig.Client{T: t, Server: s.Server, Org: id, Prefix: "/api/v1",
			Key: s.Command("admin", "keys", "create", "--org", id, "--scopes", "all", "--kind", "partner", "--name", "boss")}
	}
	s.partner, s.none = org(), org()
	var child struct{ ID string }
	s.partner.Want(201, "POST", "/partners", map[string]any{"name": "Child", "plan": "enterprise", "admin_email": "owner@child.example",
		"limits": map[string]any{"users": 5000}}, &child)
	s.child = &rig.Client{T: t, Server: s.Server, Org: child.ID, Key: s.partner.Key, Prefix: "/api/v1", As: child.ID}
	return s
}

// givers returns keys with the scopes of each role, and keys of users with each role.
func (s *grantStage) givers() (all []giver) {
	manage := []access.Scope{access.UsersAdmin, access.PartnersRead, access.PartnersWrite}
	add := func(name, role, kind, user string, scopes []access.Scope) {
		scopes = access.Intersect(access.All(), scopes)
		var made struct{ Key string }
		body := map[string]any{"name": name, "kind": kind, "scopes": scopes}
		if user != "" {
			body["user_id"] = user
		}
		s.partner.Want(201, "POST", "/api-keys", body, &made)
		all = append(all, giver{&rig.Client{T: s.t, Server: s.Server, Org: s.partner.Org, Key: made.Key, Prefix: "/api/v1"}, name, scopes,
			role, kind == "partner"})
	}
	add("users:admin alone", "owner", "standard", "", manage[:1])
	add("partners:write alone", "owner", "partner", "", manage[1:])
	add("both", "owner", "partner", "", manage)
	for _, role := range access.Roles {
		add("scopes of "+role, "owner", "partner", "", append(access.RoleScopes(role), manage...))
		add("a user who is "+role, role, "standard", s.victim(s.partner, role), append(access.RoleScopes(role), access.UsersAdmin))
	}
	return all
}

// fresh describes a new user.
func (s *grantStage) fresh(role string) map[string]any {
	s.n++
	return map[string]any{"email": fmt.Sprintf("u%d@attack.example", s.n), "first_name": "U", "role": role, "provision_sip": false}
}

// victim adds a user with a role to an organisation.
func (s *grantStage) victim(in *rig.Client, role string) string {
	var u struct{ ID string }
	in.Want(201, "POST", "/users", s.fresh(role), &u)
	return u.ID
}

func (s *grantStage) key(in *rig.Client, role string) string {
	var k struct{ ID string }
	in.Want(201, "POST", "/api-keys", map[string]any{"name": "v", "scopes": access.RoleScopes(role)}, &k)
	return k.ID
}

// try sends the granting request of an operation about a role in an organisation; what says whether the rule allows it.
func (s *grantStage) try(g giver, id, role string, in *rig.Client) (r rig.Response, allowed, known bool) {
	user := slices.Contains(g.scopes, access.UsersAdmin)
	subset := len(access.Intersect(access.RoleScopes(role), g.scopes)) == len(access.RoleScopes(role))
	at := "/partners/" + s.child.Org
	switch id {
	case "users.create":
		return g.Do("POST", "/users", s.fresh(role)), user && g.holds(role), true
	case "users.update":
		return g.Do("PATCH", "/users/"+s.victim(in, role), map[string]any{"email": s.fresh(role)["email"]}), user && g.holds(role), true
	case "users.invite":
		return g.Do("POST", "/users/"+s.victim(in, role)+"/invite", map[string]any{}), user && g.holds(role), true
	case "users.delete":
		return g.Do("DELETE", "/users/"+s.victim(in, role), nil), user && (g.holds(role) || !access.Above(role, "agent")), true
	case "apikeys.create":
		return g.Do("POST", "/api-keys", map[string]any{"name": "x", "scopes": access.RoleScopes(role)}), user && subset, true
	case "apikeys.rotate":
		return g.Do("POST", "/api-keys/"+s.key(in, role)+"/rotate", map[string]any{}), user && subset && g.role == "owner", true
	case "partners.create":
		return g.Do("POST", "/partners", map[string]any{"name": "New", "plan": "starter", "admin_email": s.fresh(role)["email"]}), g.acts && g.holds("owner"), true
	case "partners.users.create":
		return g.Do("POST", at+"/users", s.fresh(role)), g.acts && g.holds(role), true
	case "partners.users.update":
		return g.Do("PATCH", at+"/users/"+s.victim(s.child, "viewer"), map[string]any{"role": role}), g.acts && (role == "viewer" || g.holds("viewer") && g.holds(role)), true
	case "partners.keys.create":
		return g.Do("POST", at+"/keys", map[string]any{"name": "x", "scopes": access.RoleScopes(role)}), g.acts && subset, true
	}
	return r, false, false
}

// Every granting operation of the description is tried with every role, in the own organisation and in a child. The credentials have
// every set of scopes and every role. A credential grants no right that it does not hold.
func TestGrants_NobodyGivesMoreThanTheyHold(t *testing.T) {
	t.Parallel()
	s := newGrantStage(t)
	operations, givers := s.operations(), s.givers()
	if len(operations) < 10 {
		t.Fatalf("only %d operations declare that they grant", len(operations))
	}
	for id := range operations {
		for _, g := range givers {
			for _, in := range []*rig.Client{s.partner, s.child} {
				if strings.HasPrefix(id, "partners.") != (in == s.child) &&
					(in != s.child || !g.acts || !slices.Contains(g.scopes, access.UsersAdmin)) {
					continue
				}
				as := g
				if in == s.child && !strings.HasPrefix(id, "partners.") {
					acting := *g.Client
					acting.As = s.child.Org
					as.Client = &acting
				}
				for _, role := range access.Roles {
					s.check(as, id, role, in)
				}
			}
		}
	}
}

func (s *grantStage) check(g giver, id, role string, in *rig.Client) {
	s.t.Helper()
	r, allowed, known := s.try(g, id, role, in)
	switch {
	case !known:
		s.t.Fatalf("%s grants and is not in this test", id)
	case allowed && r.Status >= 300:
		s.t.Errorf("%s of %s by %s in %s: %d %s, want success", id, role, g.name, in.Org, r.Status, r.Body)
	case !allowed && r.Status != 403 && r.Status != 422:
		s.t.Errorf("%s of %s by %s in %s: %d %s, want a refusal", id, role, g.name, in.Org, r.Status, r.Body)
	}
}

// A credential finds no users and keys of another organisation, and cannot act for it.
func TestGrants_ForeignOrganisation(t *testing.T) {
	t.Parallel()
	s := newGrantStage(t)
	stranger := *s.partner
	stranger.As = s.none.Org
	for _, c := range []*rig.Client{s.partner, &stranger} {
		for _, role := range access.Roles {
			u, k := s.victim(s.none, role), s.key(s.none, role)
			for _, r := range []rig.Response{c.Do("PATCH", "/users/"+u, map[string]any{"role": "viewer"}), c.Do("DELETE", "/users/"+u, nil),
				c.Do("POST", "/users/"+u+"/invite", map[string]any{}), c.Do("POST", "/api-keys/"+k+"/rotate", map[string]any{}),
				c.Do("POST", "/partners/"+s.none.Org+"/users", s.fresh(role)),
				c.Do("POST", "/partners/"+s.none.Org+"/keys", map[string]any{"name": "x", "scopes": access.RoleScopes(role)})} {
				if r.Status != 404 && r.Status != 403 {
					t.Errorf("of a stranger: %d %s", r.Status, r.Body)
				}
			}
		}
	}
}

// A key that is bound to a network or a time makes no key that is not.
func TestGrants_BoundsAreInherited(t *testing.T) {
	t.Parallel()
	s := newGrantStage(t)
	var bound, made struct {
		Key        string
		AllowedIPs []string `json:"allowed_ips"`
		ExpiresAt  string   `json:"expires_at"`
	}
	body := map[string]any{"name": "x", "scopes": []string{"users:admin"}, "allowed_ips": []string{"127.0.0.0/8"}, "expires_at": "2099-01-01T00:00:00Z"}
	s.partner.Want(201, "POST", "/api-keys", body, &bound)
	c := *s.partner
	c.Key = bound.Key
	c.Want(201, "POST", "/api-keys", map[string]any{"name": "y", "scopes": []string{"users:admin"}}, &made)
	if !slices.Equal(made.AllowedIPs, bound.AllowedIPs) || made.ExpiresAt != bound.ExpiresAt {
		t.Errorf("made %+v with %+v", made, bound)
	}
	for member, v := range map[string]any{"allowed_ips": []string{"0.0.0.0/0"}, "expires_at": "2100-01-01T00:00:00Z"} {
		if r := c.Do("POST", "/api-keys", map[string]any{"name": "z", "scopes": []string{"users:admin"}, member: v}); r.Status != 422 {
			t.Errorf("%s: %d %s", member, r.Status, r.Body)
		}
	}
}
