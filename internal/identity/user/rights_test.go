package user_test

import (
	"context"
	"slices"
	"testing"

	"soniq/internal/identity/user"
	"soniq/internal/identity/user/usertest"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
)

// passwords says that every user has a password.
type passwords struct{ usertest.None }

func (passwords) HasPassword(context.Context, db.Querier, string, string) (bool, error) {
	return true, nil
}

// principal returns one with the scopes of a role, and the role.
func (h *fixture) principal(role string) access.Principal {
	p := optest.Admin(h.org)
	p.Role, p.Scopes = role, append(access.RoleScopes(role), access.UsersAdmin)
	return p
}

func TestRights_EveryRoleAgainstEveryRole(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newInvitingFixture(t, d, nil)
		n := 0
		fresh := func(role string) map[string]any {
			n++
			return map[string]any{"email": db.NewID("u") + "@example.com", "first_name": "U", "role": role}
		}
		status := func(ok bool, good int) int {
			if ok {
				return good
			}
			return 403
		}
		for i, giver := range access.Roles {
			p := h.principal(giver)
			for j, role := range access.Roles {
				holds := j <= i
				h.server.Do(p, "POST", "/users", fresh(role)).Want(status(holds, 201))
				id := h.do("POST", "/users", fresh(role)).Want(201).Text("id")
				h.server.Do(p, "POST", "/users/"+id+"/invite", map[string]any{}).Want(status(holds, 202))
				for _, change := range []map[string]any{{"email": fresh(role)["email"]}, {"voicemail": map[string]any{"pin": "4711"}}} {
					h.server.Do(p, "PATCH", "/users/"+id, change).Want(status(holds, 200))
				}
				manages := holds || j <= slices.Index(access.Roles, "agent")
				for _, change := range []map[string]any{{"forward": map[string]any{"always": "+12025550100"}}, {"status": "suspended"}, {"status": "active"}} {
					h.server.Do(p, "PATCH", "/users/"+id, change).Want(status(manages, 200))
				}
				h.server.Do(p, "DELETE", "/users/"+id, nil).Want(status(manages, 204))
				other := h.do("POST", "/users", fresh("viewer")).Want(201).Text("id")
				h.server.Do(p, "PATCH", "/users/"+other, map[string]any{"role": role}).Want(status(holds, 200))
			}
		}
		p := h.principal("owner")
		p.Scopes = []access.Scope{access.UsersAdmin}
		a := h.server.Do(p, "POST", "/users", fresh("agent")).Want(403)
		if a.Text("code") != "role_not_held" || len(a.Body["required_scopes"].([]any)) == 0 {
			t.Errorf("got %s", a.Bytes)
		}
	})
}

// A link that replaces a password is shown to an owner in person alone. It is never shown to a program that acts for a person.
func TestInvite_PasswordAlreadySet(t *testing.T) {
	t.Parallel()
	s, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	h := newFixture(t, dbtest.SQLite(t), func(c *user.Config) {
		c.Invites, c.Logins = &user.Invites{Seal: s, BaseURL: "https://voice.example", Jobs: nil}, passwords{}
	})
	id := h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada","role":"owner"}`).Want(201).Text("id")
	invite := func(change func(*access.Principal)) *optest.Answer {
		p := h.principal("owner")
		change(&p)
		return h.server.Do(p, "POST", "/users/"+id+"/invite", map[string]any{})
	}
	invite(func(*access.Principal) {}).Want(501)
	invite(func(p *access.Principal) { p.UserID, p.Kind = "usr_x", access.OAuthToken }).Want(501)
	invite(func(p *access.Principal) { p.UserID, p.HomeID = "usr_x", "org_partner" }).Want(501)
	if invite(func(p *access.Principal) { p.UserID = "usr_x" }).Want(202).Text("url") == "" {
		t.Error("the owner gets no link")
	}
	assistant := h.principal("owner")
	assistant.UserID, assistant.Kind = "usr_x", access.OAuthToken
	made := h.server.Do(assistant, "POST", "/users", `{"email":"bob@example.com","first_name":"Bob"}`).Want(201)
	if made.At("invitation.url") != nil {
		t.Errorf("an assistant got %s", made.Bytes)
	}
}
