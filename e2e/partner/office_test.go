package partner

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/platform/access"
)

// partner is an organisation with a key for partners, and a child organisation with a key of its own.
type partner struct {
	*rig.Client
	child string
	site  *fixture.Org
}

// newPartner makes a partner and a child.
func newPartner(s *rig.Server) partner {
	s.T.Helper()
	org := s.Command("admin", "orgs", "create", "--name", "Harbor Internet", "--country", "US")
	p := partner{Client: &rig.Client{T: s.T, Server: s, Org: org, Prefix: "/api/v1"}}
	p.Key = s.Command("admin", "keys", "create", "--org", org, "--scopes", "all", "--kind", "partner")
	var child struct{ ID string }
	p.Want(201, "POST", "/partners", map[string]any{"name": "Harbor Dental", "plan": "business", "admin_email": "owner@dental.example",
		"call_recording_enabled": true}, &child)
	p.child = child.ID
	var scopes []string
	for _, scope := range access.All() {
		if !scope.Partner() {
			scopes = append(scopes, string(scope))
		}
	}
	var key struct{ Key string }
	p.Want(201, "POST", "/partners/"+p.child+"/keys", map[string]any{"name": "set-up", "scopes": scopes}, &key)
	p.site = &fixture.Org{Client: &rig.Client{T: s.T, Server: s, Org: p.child, Key: key.Key, Prefix: "/api/v1"}}
	p.site.Webhook = p.site.Hook(nil)
	return p
}

// user adds a user to the child, as the partner.
func (p partner) user(first string) (u rig.User) {
	p.T.Helper()
	p.Want(201, "POST", "/partners/"+p.child+"/users", map[string]any{"email": strings.ToLower(first) + "@dental.example", "first_name": first}, &u)
	return u
}

// do requests an action on the child, and returns the child's status.
func (p partner) do(what string, body map[string]any) string {
	p.T.Helper()
	var out struct{ Status string }
	p.Want(200, "POST", "/partners/"+p.child+"/"+what, body, &out)
	return out.Status
}

// practice is a child organisation with two users, a telephone of the first, and a carrier.
type practice struct {
	partner
	t        *testing.T
	ada, bob rig.User
	phone    *rig.Phone
	way      fixture.Carrier
}

// newPractice makes a child organisation.
func newPractice(t *testing.T, s *rig.Server) practice {
	t.Helper()
	p := practice{partner: newPartner(s), t: t}
	p.ada, p.bob = p.user("Ada"), p.user("Bob")
	p.way = p.site.AddCarrier(p.ada.ID, map[string]any{"emergency_capable": true})
	say, _ := fixture.Tone(t, 440)
	p.phone = s.Phone(p.ada.SIP, rig.PhoneOptions{Auto: true, Say: say})
	return p
}

// callOut makes bob call a number that the carrier answers.
func (p practice) callOut(number string) {
	p.t.Helper()
	answers := p.Server.Sipp(rig.Script{Scenario: "answer", IP: p.way.IP, Port: p.way.Port})
	p.Server.Sipp(rig.Script{Scenario: "call", Login: &p.bob.SIP, Number: number, Talk: 300 * time.Millisecond}).Wait()
	answers.Wait()
	if invite := answers.Received("INVITE ", 0); !strings.HasPrefix(invite, "INVITE sip:"+number+"@") {
		p.t.Errorf("the carrier got %s, want %s", fixture.StartLine(invite), number)
	}
}

// callRefused makes bob call and expects a refusal with a status.
func (p practice) callRefused(number string, status int) {
	p.t.Helper()
	p.Server.Sipp(rig.Script{Scenario: "call_refused", Login: &p.bob.SIP, Number: number, Status: status}).Wait()
}

// callIn makes the carrier call ada, who answers.
func (p practice) callIn() {
	p.t.Helper()
	p.Server.Sipp(rig.Script{Scenario: "call", IP: p.way.IP, From: "+12125550177", Number: p.way.Number,
		Talk: 300 * time.Millisecond}).Wait()
}

// errorCode returns the code of an error of the API.
func (p practice) errorCode(r rig.Response) string {
	code, _ := r.JSON()["code"].(string)
	return code
}
