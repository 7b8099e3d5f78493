package call

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestRinging_FirstAnswerWins(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	desk, login := company.AddDevice(user)
	slow := s.Sipp(rig.Script{Scenario: "cancelled", Port: company.RegisterSipp(user.SIP), From: user.SIP.Username})
	fast := s.Sipp(rig.Script{Scenario: "answer", Ring: 500, Port: company.RegisterSipp(login), From: login.Username})
	s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12125550177", Number: way.Number, Talk: time.Second}).Wait()
	fast.Wait()
	slow.Wait()
	r := company.CDR("+12125550177")
	if r.String() != "inbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
	if got := deviceOf(company, "+12125550177"); got != desk {
		t.Errorf("device of the call is %s, want %s", got, desk)
	}
}

func TestRinging_AnswerAcrossCancel(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	desk, login := company.AddDevice(user)
	late := s.Sipp(rig.Script{Scenario: "answer_across_cancel", Port: company.RegisterSipp(user.SIP), From: user.SIP.Username})
	fast := s.Sipp(rig.Script{Scenario: "answer", Ring: 300, Port: company.RegisterSipp(login), From: login.Username})
	s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12125550177", Number: way.Number, Talk: 2 * time.Second}).Wait()
	late.Wait()
	fast.Wait()
	if r := company.CDR("+12125550177"); r.String() != "inbound completed caller_hangup caller 0" || r.Talk < 2 {
		t.Errorf("record: %s, %d s", r, r.Talk)
	}
	if deviceOf(company, "+12125550177") != desk {
		t.Errorf("the call is not with the phone that was first")
	}
}

// A CANCEL says that the call was completed elsewhere if and only if another phone answered. The caller's own Reason is
// passed on.
// https://github.com/asterisk/asterisk/issues/116
// https://github.com/signalwire/freeswitch/issues/1426
func TestRinging_ReasonOfCancel(t *testing.T) {
	t.Parallel()
	const elsewhere = `SIP;cause=200;text="Call completed elsewhere"`
	for _, c := range []struct {
		name   string
		answer bool // by the second device
		reason string
		want   string
	}{
		{"another device answers", true, "", elsewhere},
		{"the caller gives up", false, "", ""},
		{"the caller gives a reason", false, "Q.850;cause=16", "Q.850;cause=16"},
		{"the caller was answered elsewhere", false, elsewhere, elsewhere},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
			company := fixture.NewOrg(s)
			user := company.AddUser("Ada")
			way := company.AddCarrier(user.ID, nil)
			phones := []*rig.Sipp{s.Sipp(rig.Script{Scenario: "cancelled", Port: company.RegisterSipp(user.SIP), From: user.SIP.Username})}
			caller := rig.Script{Scenario: "call_cancel", IP: way.IP, From: "+12125550177", Number: way.Number, Reason: c.reason}
			if c.answer {
				_, login := company.AddDevice(user)
				phones = append(phones, s.Sipp(rig.Script{Scenario: "answer", Ring: 500, Port: company.RegisterSipp(login),
					From: login.Username}))
				caller.Scenario, caller.Talk = "call", time.Second
			}
			s.Sipp(caller).Wait()
			for _, p := range phones {
				p.Wait()
			}
			if got := reasonOfCancel(company, "/calls/"+company.CDR("+12125550177").CallID); got != c.want {
				t.Errorf("Reason %q, want %q", got, c.want)
			}
		})
	}
}

// reasonOfCancel returns the Reason of the CANCEL that was sent in a call.
func reasonOfCancel(s *fixture.Org, path string) string {
	s.T.Helper()
	var trace fixture.Trace
	s.Want(200, "GET", path+"/trace", nil, &trace)
	for _, m := range trace.Messages {
		if m.Sent && strings.HasPrefix(m.Text, "CANCEL ") {
			_, after, _ := strings.Cut(m.Text, "\r\nReason: ")
			reason, _, _ := strings.Cut(after, "\r\n")
			return reason
		}
	}
	return "no CANCEL"
}

// deviceOf returns the device of the one call with a number.
func deviceOf(s *fixture.Org, number string) string {
	s.T.Helper()
	var c struct {
		Device string `json:"device_id"`
	}
	s.Want(200, "GET", "/calls/"+s.CDR(number).CallID, nil, &c)
	return c.Device
}

func TestRinging_BusyPhoneLeavesOthers(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	_, login := company.AddDevice(user)
	busy := s.Sipp(rig.Script{Scenario: "refuse", Status: 486, Port: company.RegisterSipp(user.SIP), From: user.SIP.Username})
	free := s.Sipp(rig.Script{Scenario: "answer", Ring: 1000, Port: company.RegisterSipp(login), From: login.Username})
	s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12125550177", Number: way.Number, Talk: time.Second}).Wait()
	busy.Wait()
	free.Wait()
	if r := company.CDR("+12125550177"); r.String() != "inbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}

func TestRinging_DeclineEndsAll(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	_, login := company.AddDevice(user)
	declines := s.Sipp(rig.Script{Scenario: "refuse", Status: 603, Port: company.RegisterSipp(user.SIP), From: user.SIP.Username})
	other := s.Sipp(rig.Script{Scenario: "cancelled", Port: company.RegisterSipp(login), From: login.Username})
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.IP, From: "+12125550177", Number: way.Number, Status: 603}).Wait()
	declines.Wait()
	other.Wait()
	if r := company.CDR("+12125550177"); r.String() != "inbound missed rejected callee 603" {
		t.Errorf("record: %s", r)
	}
}

func TestRinging_DoNotDisturb(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	port := company.RegisterSipp(user.SIP)
	callee := s.Sipp(rig.Script{Scenario: "answer", Port: port, From: user.SIP.Username})
	company.Want(200, "PUT", "/users/"+user.ID+"/dnd", map[string]any{"enabled": true}, nil)
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.IP, From: "+12125550101", Number: way.Number, Status: 480}).Wait()
	if r := company.CDR("+12125550101"); r.String() != "inbound missed no_answer system 480" {
		t.Errorf("record: %s", r)
	}
	company.Want(200, "PUT", "/users/"+user.ID+"/dnd", map[string]any{"enabled": false}, nil)
	s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12125550102", Number: way.Number, Talk: 500 * time.Millisecond}).Wait()
	callee.Wait() // if it had rung for the first call, its scenario would have ended before the second
	if r := company.CDR("+12125550102"); r.String() != "inbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}

func TestRinging_UnregisteredPhone(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	low, _ := fixture.Tone(t, 440)
	for _, transport := range []string{"udp", "tcp"} {
		phone := s.Phone(user.SIP, rig.PhoneOptions{Say: low, Auto: true, Transport: transport})
		from := map[string]string{"udp": "+12125550101", "tcp": "+12125550102"}[transport]
		s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: from, Number: way.Number, Talk: 500 * time.Millisecond}).Wait()
		phone.Wait("CALL_CLOSED", "")
		phone.Close()
		s.Sipp(rig.Script{Scenario: "call_refused", Status: 480, IP: way.IP, From: from + "9", Number: way.Number}).Wait()
		if r := company.CDR(from); r.String() != "inbound completed caller_hangup caller 0" {
			t.Errorf("%s: record of the call before: %s", transport, r)
		}
		if r := company.CDR(from + "9"); r.String() != "inbound missed no_answer system 480" {
			t.Errorf("%s: record of the call after: %s", transport, r)
		}
	}
}

func TestRinging_ClosedTCPConnection(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	s.Sipp(rig.Script{Scenario: "register", Login: &user.SIP, TCP: true}).Wait() // and vanishes without a BYE
	began := time.Now()
	s.Sipp(rig.Script{Scenario: "call_refused", Status: 480, IP: way.IP, From: "+12125550101", Number: way.Number}).Wait()
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("the caller waited %s for a phone that is gone", d)
	}
	if r := company.CDR("+12125550101"); r.String() != "inbound missed no_answer system 480" {
		t.Errorf("record: %s", r)
	}
}
