package security

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// nonce matches the nonce of a challenge.
var nonce = regexp.MustCompile(`nonce="[^"]*"`)

// challenge returns a challenge without the parts that differ each time.
func challenge(t *testing.T, message, field string) string {
	t.Helper()
	line, _, _ := strings.Cut(message, "\n")
	value := rig.Field(message, field)
	if !nonce.MatchString(value) {
		t.Fatalf("no nonce in the challenge: %q of\n%s", value, message)
	}
	return line + " " + nonce.ReplaceAllString(value, "nonce")
}

func TestLogin_WrongPasswordAndUnknownUserAlike(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	user := fixture.NewOrg(s).AddUser("Ada")
	wrong, unknown := user.SIP, user.SIP
	wrong.Password += "x"
	unknown.Username = "nobody" + unknown.Username[6:]
	for _, c := range []struct {
		scenario, status, field string
		final                   int
	}{
		{"register_refused", "SIP/2.0 401", "WWW-Authenticate", 0},
		{"call_refused", "SIP/2.0 407", "Proxy-Authenticate", 407},
	} {
		var answers []string
		for _, l := range []rig.Login{wrong, unknown} {
			run := s.Sipp(rig.Script{Scenario: c.scenario, Login: &l, Number: "100", Status: c.final})
			run.Wait()
			first, second := run.Received(c.status, 0), run.Received(c.status, 1)
			if rig.Field(first, c.field) == rig.Field(second, c.field) {
				t.Errorf("%s: the second challenge is not a fresh one: %s", c.scenario, rig.Field(first, c.field))
			}
			answers = append(answers, challenge(t, first, c.field), challenge(t, second, c.field))
		}
		for _, a := range answers[1:] {
			if a != answers[0] {
				t.Errorf("%s: the challenges differ:\n%s", c.scenario, strings.Join(answers, "\n"))
				break
			}
		}
	}
	var page struct{ Data []any }
	site := s.Org("live")
	site.Want(200, "GET", "/cdr", nil, &page)
	if len(page.Data) != 0 {
		t.Errorf("refused log-ins left records: %v", page.Data)
	}
}

func TestLogin_UnknownCallerChallenged(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	way := company.AddCarrier(company.AddUser("Ada").ID, nil)
	s.Sipp(rig.Script{Scenario: "call_challenged", IP: "127.9.9.9", Number: way.Number}).Wait()
	var page struct{ Data []fixture.CDR }
	company.Want(200, "GET", "/calls", nil, &page)
	if len(page.Data) != 0 {
		t.Errorf("a stranger's call was taken: %v", page.Data)
	}
}

func TestLogin_RotatedPassword(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	company.RegisterSipp(user.SIP)
	var rotated rig.Login
	company.Want(200, "POST", "/users/"+user.ID+"/sip-credentials/rotate", map[string]any{}, &rotated)
	s.Sipp(rig.Script{Scenario: "register_refused", Login: &user.SIP}).Wait()
	if rotated.Password == "" || rotated.Password == user.SIP.Password {
		t.Fatalf("rotated credentials: %+v", rotated)
	}
	company.RegisterSipp(rotated)
}

func TestLogin_TrunkByPassword(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	login := rig.Login{Username: "carrier-one", Password: "a long password of a carrier"}
	way := company.AddCarrier(user.ID, map[string]any{"inbound": map[string]any{"username": login.Username, "password": login.Password}})
	callee := s.Sipp(rig.Script{Scenario: "answer", Port: company.RegisterSipp(user.SIP), From: user.SIP.Username})
	s.Sipp(rig.Script{Scenario: "call", IP: "127.9.9.8", From: "+12125550188", Login: &login, Number: way.Number,
		Talk: 500 * time.Millisecond}).Wait()
	callee.Wait()
	if r := company.CDR("+12125550188"); r.String() != "inbound completed caller_hangup caller 0" || r.TrunkID == nil || *r.TrunkID != way.Trunk {
		t.Errorf("record: %s by trunk %v", r, r.TrunkID)
	}
}
