package trunk

import (
	"crypto/md5"
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestFailover_NextTrunk(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	broken := company.AddCarrier(user.ID, map[string]any{"priority": 1})
	way := company.AddCarrier(user.ID, map[string]any{"priority": 2})
	first := s.Sipp(rig.Script{Scenario: "refuse", Status: 503, IP: broken.IP, Port: broken.Port})
	second := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "+12125550142", Talk: 500 * time.Millisecond}).Wait()
	first.Wait()
	second.Wait()
	if r := company.CDR("+12125550142"); r.String() != "outbound completed caller_hangup caller 0" || r.TrunkID == nil || *r.TrunkID != way.Trunk {
		t.Errorf("record: %s by trunk %v, want %s", r, r.TrunkID, way.Trunk)
	}
}

func TestCarrier_DigestChallenge(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	login := rig.Login{Username: "customer-7", Password: "what the carrier gave us"}
	way := company.AddCarrier(user.ID, map[string]any{"username": login.Username, "password": login.Password})
	carrier := s.Sipp(rig.Script{Scenario: "answer_after_challenge", IP: way.IP, Port: way.Port})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "+12125550142", Talk: 500 * time.Millisecond}).Wait()
	carrier.Wait()
	answer := fixture.DigestParameters(rig.Field(carrier.Received("INVITE ", 1), "Proxy-Authorization"))
	hash := func(text string) string { return fmt.Sprintf("%x", md5.Sum([]byte(text))) }
	want := hash(strings.Join([]string{hash(login.Username + ":carrier.example:" + login.Password), answer["nonce"], answer["nc"],
		answer["cnonce"], "auth", hash("INVITE:" + answer["uri"])}, ":"))
	if answer["username"] != login.Username || answer["response"] != want {
		t.Errorf("the carrier was answered %v, want the response %s", answer, want)
	}
	if r := company.CDR("+12125550142"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}

func TestCarrier_OverTCP(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, map[string]any{"transport": "tcp"})
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port, TCP: true})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "+12125550142", Talk: 500 * time.Millisecond}).Wait()
	carrier.Wait()
	if r := company.CDR("+12125550142"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}

func TestTrunk_ChannelLimit(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, map[string]any{"max_channels": 1})
	for n := range 2 { // the second call proves that the channel was released
		carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
		first := s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: fmt.Sprintf("+1212555014%d", n), Talk: 2 * time.Second})
		company.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
		s.Sipp(rig.Script{Scenario: "call_refused", Status: 503, Login: &user.SIP, Number: fmt.Sprintf("+1212555015%d", n)}).Wait()
		first.Wait()
		carrier.Wait()
	}
}

func TestCarrier_SharedByTwoOrganisations(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	first, second := fixture.NewOrg(s), fixture.NewOrg(s)
	way := first.AddCarrier(first.AddUser("Ada").ID, nil)
	var trunk struct{ ID string }
	second.Want(201, "POST", "/trunks", map[string]any{"name": "same carrier", "host": way.IP, "port": way.Port}, &trunk)
	user := second.AddUser("Bob")
	second.Want(201, "POST", "/numbers", map[string]any{"number": "+12025559876", "trunk_id": trunk.ID, "user_id": user.ID}, nil)
	callee := s.Sipp(rig.Script{Scenario: "answer", Port: second.RegisterSipp(user.SIP), From: user.SIP.Username})
	s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12125550177", Number: "+12025559876", Talk: 500 * time.Millisecond}).Wait()
	callee.Wait()
	if r := second.CDR("+12125550177"); r.String() != "inbound completed caller_hangup caller 0" || r.TrunkID == nil || *r.TrunkID != trunk.ID {
		t.Errorf("record: %s by trunk %v, want %s", r, *r.TrunkID, trunk.ID)
	}
	var page struct{ Data []fixture.CDR }
	if first.Want(200, "GET", "/cdr", nil, &page); len(page.Data) != 0 {
		t.Errorf("the other organisation has records: %v", page.Data)
	}
}
