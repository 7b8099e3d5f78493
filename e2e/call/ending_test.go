package call

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

func TestHangup_CalleeNamed(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	office := fixture.NewOrg(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	low, _ := fixture.Tone(t, 440)
	caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: low})
	callee := s.Phone(bob.SIP, rig.PhoneOptions{Say: low, Auto: true})
	caller.Dial(bob.Extension)
	callee.Listen(500 * time.Millisecond)
	callee.Do("hangup", "")
	caller.Wait("CALL_CLOSED", "")
	if got := office.CDR(ada.Extension).String(); got != "internal completed agent_hangup agent 0" {
		t.Errorf("record: %s", got)
	}
}

// ending is a way in which a call ends: the scenarios of both sides, and the expected record.
type ending struct {
	name           string
	caller, callee rig.Script
	// direction, status, end_reason, hangup_by and sip_status
	inbound, outbound string
}

// endings lists the ways in which calls end. Both directions try all of them.
var endings = []ending{
	{"the caller hangs up", rig.Script{Scenario: "call", Talk: 600 * time.Millisecond}, rig.Script{Scenario: "answer"},
		"inbound completed caller_hangup caller 0", "outbound completed caller_hangup caller 0"},
	{"the callee hangs up", rig.Script{Scenario: "call_until_bye"}, rig.Script{Scenario: "answer_bye", Talk: 600 * time.Millisecond},
		"inbound completed agent_hangup agent 0", "outbound completed callee_hangup callee 0"},
	{"the caller gives up", rig.Script{Scenario: "call_cancel"}, rig.Script{Scenario: "cancelled"},
		"inbound missed canceled caller 487", "outbound canceled canceled caller 487"},
	{"the answer crosses the CANCEL", rig.Script{Scenario: "call_cancel"}, rig.Script{Scenario: "answer_across_cancel"},
		"inbound missed canceled caller 487", "outbound canceled canceled caller 487"},
	{"busy", rig.Script{Scenario: "call_refused", Status: 486}, rig.Script{Scenario: "refuse", Status: 486},
		"inbound missed busy callee 486", "outbound busy busy callee 486"},
	{"declined", rig.Script{Scenario: "call_refused", Status: 603}, rig.Script{Scenario: "refuse", Status: 603},
		"inbound missed rejected callee 603", "outbound busy rejected callee 603"},
	{"nobody answers", rig.Script{Scenario: "call_refused", Status: 480}, rig.Script{Scenario: "refuse", Status: 480},
		"inbound missed no_answer system 480", "outbound no_answer no_answer system 480"},
	{"the offer comes late", rig.Script{Scenario: "call", LateOffer: true, Talk: 600 * time.Millisecond}, rig.Script{Scenario: "answer"},
		"inbound completed caller_hangup caller 0", "outbound completed caller_hangup caller 0"},
	{"it rings twelve times", rig.Script{Scenario: "call", Talk: 600 * time.Millisecond}, rig.Script{Scenario: "answer_after_twelve_rings"},
		"inbound completed caller_hangup caller 0", "outbound completed caller_hangup caller 0"},
	{"the caller never acknowledges", rig.Script{Scenario: "call_without_ack"}, rig.Script{Scenario: "answer"},
		"inbound completed timeout system 0", "outbound completed timeout system 0"},
}

func TestEnding_Inbound(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "every ending, one after the other")
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		company := fixture.NewOrg(s)
		for i, e := range endings {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				callFromCarrier(company.In(t), e, fmt.Sprintf("+12125552%03d", i))
			})
		}
	})
}

// callFromCarrier makes a call from a carrier to a number that rings a telephone.
func callFromCarrier(s *fixture.Org, e ending, from string) {
	s.T.Helper()
	user := s.AddUser("Ada" + strings.ReplaceAll(e.name, " ", ""))
	way := s.AddCarrier(user.ID, nil)
	phone := e.callee
	phone.Port, phone.From = s.RegisterSipp(user.SIP), user.SIP.Username
	callee := s.Server.Sipp(phone)
	carrier := e.caller
	carrier.IP, carrier.From, carrier.Number = way.IP, from, way.Number
	s.Server.Sipp(carrier).Wait()
	callee.Wait()
	r := s.CDR(from)
	if r.String() != e.inbound {
		s.T.Errorf("record: %s; want %s", r, e.inbound)
	}
	if r.To != way.Number || r.From != from || r.TrunkID == nil || *r.TrunkID != way.Trunk || r.NumberID == nil {
		s.T.Errorf("record is from %s to %s by trunk %v, number %v", r.From, r.To, r.TrunkID, r.NumberID)
	}
	missed := strings.Contains(e.inbound, " missed ")
	if missed != (r.MissedReason != nil) || missed == (r.AnsweredAt != nil) {
		s.T.Errorf("missed_reason %v, answered at %v", r.MissedReason, r.AnsweredAt)
	}
	if missed {
		s.WantMissed(r.CallID)
	}
}

func TestEnding_Outbound(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "every ending, one after the other")
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		for i, e := range endings {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				own := *s
				own.T = t
				callToCarrier(fixture.NewOrg(&own), e, fmt.Sprintf("+12125553%03d", i))
			})
		}
	})
}

// callToCarrier makes a call from a telephone to an outside number.
func callToCarrier(s *fixture.Org, e ending, to string) {
	s.T.Helper()
	user := s.AddUser("Ada")
	way := s.AddCarrier(user.ID, nil)
	carrier := e.callee
	carrier.IP, carrier.Port = way.IP, way.Port
	callee := s.Server.Sipp(carrier)
	phone := e.caller
	phone.Login, phone.Number = &user.SIP, to
	s.Server.Sipp(phone).Wait()
	callee.Wait()
	r := s.CDR(to)
	if r.String() != e.outbound {
		s.T.Errorf("record: %s; want %s", r, e.outbound)
	}
	if r.To != to || r.From != way.Number {
		s.T.Errorf("record is from %s to %s", r.From, r.To)
	}
	if r.AnsweredAt != nil && (r.TrunkID == nil || *r.TrunkID != way.Trunk) {
		s.T.Errorf("record names trunk %v, want %s", r.TrunkID, way.Trunk)
	}
	if r.MissedReason != nil {
		s.T.Errorf("an outbound call is missed: %s", *r.MissedReason)
	}
	mine := func(e rig.Event) bool { return e.Data["call_id"] == r.CallID }
	if e := s.Webhook.Wait("call.started", 30*time.Second, mine); e.Data["direction"] != "outbound" || e.Data["user_id"] != user.ID || e.Data["source"] != "device" {
		s.T.Errorf("call.started: %v", e.Data)
	}
	if r.AnsweredAt == nil {
		s.WantEvents(r.CallID, "call.started", "call.ended")
		return
	}
	if e := s.Webhook.Wait("call.answered", 30*time.Second, mine); e.Data["answered_by"] != "callee" || e.Data["agent_id"] != nil {
		s.T.Errorf("call.answered: %v", e.Data)
	}
}

func TestInbound_NoRegisteredPhone(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	const from = "+12125550199"
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.IP, From: from, Number: way.Number, Status: 480}).Wait()
	r := company.CDR(from)
	if r.String() != "inbound missed no_answer system 480" || r.MissedReason == nil || *r.MissedReason != "no_answer" {
		t.Errorf("record: %s, missed because %v", r, r.MissedReason)
	}
	company.WantMissed(r.CallID)
}

func TestInbound_UnknownNumber(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	way := company.AddCarrier(company.AddUser("Ada").ID, nil)
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.IP, From: "+12125550199", Number: "+12125559999", Status: 404}).Wait()
	r := company.CDR("+12125550199")
	if r.String() != "inbound missed invalid_number system 404" {
		t.Errorf("record: %s", r)
	}
}

func TestRinging_Timeout(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--ring-time", "1s"}})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	callee := s.Sipp(rig.Script{Scenario: "cancelled", Port: company.RegisterSipp(user.SIP), From: user.SIP.Username})
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.IP, From: "+12125550199", Number: way.Number, Status: 480}).Wait()
	callee.Wait()
	r := company.CDR("+12125550199")
	if r.String() != "inbound missed no_answer system 480" || r.Q850 == nil || *r.Q850 != 19 || r.Ring < 1 {
		t.Errorf("record: %s after %d s, Q.850 %v", r, r.Ring, r.Q850)
	}
}

func TestEnding_MaximumDuration(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.Bob.Extension, "user_id": o.Ada.ID, "max_duration_seconds": 3}, nil)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	o.HearsOnly("Ada, before,", o.AdaPhone, fixture.BobTone)
	o.AdaPhone.Wait("CALL_CLOSED", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	r := o.CDRs(1, "")[0]
	if r.String() != "internal completed max_duration system 0" || r.Talk < 2 || r.Talk > 4 {
		t.Errorf("record: %s, talked for %d s", r, r.Talk)
	}
}
