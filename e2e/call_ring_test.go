package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
)

// secondPhone gives a user another telephone.
func (s *site) secondPhone(u rig.User) (id string, l rig.Login) {
	s.T.Helper()
	var made struct {
		ID  string
		SIP rig.Login
	}
	s.Want(201, "POST", "/devices", map[string]any{"user_id": u.ID, "name": "desk", "kind": "desk_phone"}, &made)
	return made.ID, made.SIP
}

func TestTwoPhonesOfAUserRingAndTheFirstToAnswerWins(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	desk, login := company.secondPhone(user)
	slow := s.Sipp(rig.Script{Scenario: "cancelled", Port: company.sippPhone(user.SIP), From: user.SIP.Username})
	fast := s.Sipp(rig.Script{Scenario: "answer", Ring: 500, Port: company.sippPhone(login), From: login.Username})
	s.Sipp(rig.Script{Scenario: "call", IP: way.ip, From: "+12125550177", Number: way.number, Talk: time.Second}).Wait()
	fast.Wait()
	slow.Wait()
	r := company.record("+12125550177")
	if r.String() != "inbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
	if got := company.device("+12125550177"); got != desk {
		t.Errorf("device of the call is %s, want %s", got, desk)
	}
}

func TestThePhoneThatAnswersTooLateIsHungUp(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	desk, login := company.secondPhone(user)
	late := s.Sipp(rig.Script{Scenario: "answer_across_cancel", Port: company.sippPhone(user.SIP), From: user.SIP.Username})
	fast := s.Sipp(rig.Script{Scenario: "answer", Ring: 300, Port: company.sippPhone(login), From: login.Username})
	s.Sipp(rig.Script{Scenario: "call", IP: way.ip, From: "+12125550177", Number: way.number, Talk: 2 * time.Second}).Wait()
	late.Wait()
	fast.Wait()
	if r := company.record("+12125550177"); r.String() != "inbound completed caller_hangup caller 0" || r.Talk < 2 {
		t.Errorf("record: %s, %d s", r, r.Talk)
	}
	if company.device("+12125550177") != desk {
		t.Errorf("the call is not with the phone that was first")
	}
}

// device is the telephone that had the one call with a number.
func (s *site) device(number string) string {
	s.T.Helper()
	var c struct {
		Device string `json:"device_id"`
	}
	s.Want(200, "GET", "/calls/"+s.record(number).CallID, nil, &c)
	return c.Device
}

func TestAPhoneThatIsBusyLeavesTheOthersRinging(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	_, login := company.secondPhone(user)
	busy := s.Sipp(rig.Script{Scenario: "refuse", Status: 486, Port: company.sippPhone(user.SIP), From: user.SIP.Username})
	free := s.Sipp(rig.Script{Scenario: "answer", Ring: 1000, Port: company.sippPhone(login), From: login.Username})
	s.Sipp(rig.Script{Scenario: "call", IP: way.ip, From: "+12125550177", Number: way.number, Talk: time.Second}).Wait()
	busy.Wait()
	free.Wait()
	if r := company.record("+12125550177"); r.String() != "inbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}

func TestAPhoneThatDeclinesEndsTheCallForAll(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	_, login := company.secondPhone(user)
	declines := s.Sipp(rig.Script{Scenario: "refuse", Status: 603, Port: company.sippPhone(user.SIP), From: user.SIP.Username})
	other := s.Sipp(rig.Script{Scenario: "cancelled", Port: company.sippPhone(login), From: login.Username})
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.ip, From: "+12125550177", Number: way.number, Status: 603}).Wait()
	declines.Wait()
	other.Wait()
	if r := company.record("+12125550177"); r.String() != "inbound missed rejected callee 603" {
		t.Errorf("record: %s", r)
	}
}

func TestDoNotDisturbKeepsThePhoneSilent(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	port := company.sippPhone(user.SIP)
	callee := s.Sipp(rig.Script{Scenario: "answer", Port: port, From: user.SIP.Username})
	company.Want(200, "PUT", "/users/"+user.ID+"/dnd", map[string]any{"enabled": true}, nil)
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.ip, From: "+12125550101", Number: way.number, Status: 480}).Wait()
	if r := company.record("+12125550101"); r.String() != "inbound missed no_answer system 480" {
		t.Errorf("record: %s", r)
	}
	company.Want(200, "PUT", "/users/"+user.ID+"/dnd", map[string]any{"enabled": false}, nil)
	s.Sipp(rig.Script{Scenario: "call", IP: way.ip, From: "+12125550102", Number: way.number, Talk: 500 * time.Millisecond}).Wait()
	callee.Wait() // had it rung before, the second call would have found it at its end
	if r := company.record("+12125550102"); r.String() != "inbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}

func TestAPhoneThatIsSwitchedOffIsNotRung(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	low, _ := tone(t, 440)
	for _, transport := range []string{"udp", "tcp"} {
		phone := s.Phone(user.SIP, rig.PhoneOptions{Say: low, Auto: true, Transport: transport})
		from := map[string]string{"udp": "+12125550101", "tcp": "+12125550102"}[transport]
		s.Sipp(rig.Script{Scenario: "call", IP: way.ip, From: from, Number: way.number, Talk: 500 * time.Millisecond}).Wait()
		phone.Wait("CALL_CLOSED", "")
		phone.Close()
		s.Sipp(rig.Script{Scenario: "call_refused", Status: 480, IP: way.ip, From: from + "9", Number: way.number}).Wait()
		if r := company.record(from); r.String() != "inbound completed caller_hangup caller 0" {
			t.Errorf("%s: record of the call before: %s", transport, r)
		}
		if r := company.record(from + "9"); r.String() != "inbound missed no_answer system 480" {
			t.Errorf("%s: record of the call after: %s", transport, r)
		}
	}
}

func TestAPhoneWhoseConnectionBrokeIsNotRung(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	s.Sipp(rig.Script{Scenario: "register", Login: &user.SIP, TCP: true}).Wait() // and goes away without a word
	began := time.Now()
	s.Sipp(rig.Script{Scenario: "call_refused", Status: 480, IP: way.ip, From: "+12125550101", Number: way.number}).Wait()
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("the caller waited %s for a phone that is gone", d)
	}
	if r := company.record("+12125550101"); r.String() != "inbound missed no_answer system 480" {
		t.Errorf("record: %s", r)
	}
}
