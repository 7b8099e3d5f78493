package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// An ending is one way for a call to end: what both sides do, and what is written down.
type ending struct {
	name           string
	caller, callee rig.Script
	// direction, status, end_reason, hangup_by and sip_status
	inbound, outbound string
}

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

func TestEveryEndingOfACallFromACarrier(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		company := newSite(s)
		for i, e := range endings {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				company.in(t).fromCarrier(e, fmt.Sprintf("+12125552%03d", i))
			})
		}
	})
}

// fromCarrier has a carrier call a number that rings a telephone.
func (s *site) fromCarrier(e ending, from string) {
	s.T.Helper()
	user := s.AddUser("Ada" + strings.ReplaceAll(e.name, " ", ""))
	way := s.carrier(user.ID, nil)
	phone := e.callee
	phone.Port, phone.From = s.sippPhone(user.SIP), user.SIP.Username
	callee := s.Server.Sipp(phone)
	carrier := e.caller
	carrier.IP, carrier.From, carrier.Number = way.ip, from, way.number
	s.Server.Sipp(carrier).Wait()
	callee.Wait()
	r := s.record(from)
	if r.String() != e.inbound {
		s.T.Errorf("record: %s; want %s", r, e.inbound)
	}
	if r.To != way.number || r.From != from || r.TrunkID == nil || *r.TrunkID != way.trunk || r.NumberID == nil {
		s.T.Errorf("record is from %s to %s by trunk %v, number %v", r.From, r.To, r.TrunkID, r.NumberID)
	}
	missed := strings.Contains(e.inbound, " missed ")
	if missed != (r.MissedReason != nil) || missed == (r.AnsweredAt != nil) {
		s.T.Errorf("missed_reason %v, answered at %v", r.MissedReason, r.AnsweredAt)
	}
	if missed {
		s.missed(r.CallID)
	}
}

// missed checks that a missed call is told and listed as such.
func (s *site) missed(callID string) {
	s.T.Helper()
	s.inOrder(callID, "call.started", "call.missed", "call.ended")
	var page struct{ Data []struct{ ID string } }
	s.Want(200, "GET", "/calls/missed?limit=200", nil, &page)
	for _, c := range page.Data {
		if c.ID == callID {
			return
		}
	}
	s.T.Errorf("call %s is not among the missed ones", callID)
}

func TestEveryEndingOfACallToACarrier(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		for i, e := range endings {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				own := *s
				own.T = t
				newSite(&own).toCarrier(e, fmt.Sprintf("+12125553%03d", i))
			})
		}
	})
}

// toCarrier has a telephone call a number outside.
func (s *site) toCarrier(e ending, to string) {
	s.T.Helper()
	user := s.AddUser("Ada")
	way := s.carrier(user.ID, nil)
	carrier := e.callee
	carrier.IP, carrier.Port = way.ip, way.port
	callee := s.Server.Sipp(carrier)
	phone := e.caller
	phone.Login, phone.Number = &user.SIP, to
	s.Server.Sipp(phone).Wait()
	callee.Wait()
	r := s.record(to)
	if r.String() != e.outbound {
		s.T.Errorf("record: %s; want %s", r, e.outbound)
	}
	if r.To != to || r.From != way.number {
		s.T.Errorf("record is from %s to %s", r.From, r.To)
	}
	if r.AnsweredAt != nil && (r.TrunkID == nil || *r.TrunkID != way.trunk) {
		s.T.Errorf("record names trunk %v, want %s", r.TrunkID, way.trunk)
	}
	if r.MissedReason != nil {
		s.T.Errorf("an outbound call is missed: %s", *r.MissedReason)
	}
	mine := func(e rig.Event) bool { return e.Data["call_id"] == r.CallID }
	if e := s.hooks.Wait("call.started", 30*time.Second, mine); e.Data["direction"] != "outbound" || e.Data["user_id"] != user.ID || e.Data["source"] != "device" {
		s.T.Errorf("call.started: %v", e.Data)
	}
	if r.AnsweredAt == nil {
		s.inOrder(r.CallID, "call.started", "call.ended")
		return
	}
	if e := s.hooks.Wait("call.answered", 30*time.Second, mine); e.Data["answered_by"] != "callee" || e.Data["agent_id"] != nil {
		s.T.Errorf("call.answered: %v", e.Data)
	}
}

func TestACallToNobodyIsMissed(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	const from = "+12125550199"
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.ip, From: from, Number: way.number, Status: 480}).Wait()
	r := company.record(from)
	if r.String() != "inbound missed no_answer system 480" || r.MissedReason == nil || *r.MissedReason != "no_answer" {
		t.Errorf("record: %s, missed because %v", r, r.MissedReason)
	}
	company.missed(r.CallID)
}

func TestANumberOfNobodyIsNotFound(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	way := company.carrier(company.AddUser("Ada").ID, nil)
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.ip, From: "+12125550199", Number: "+12125559999", Status: 404}).Wait()
	r := company.record("+12125550199")
	if r.String() != "inbound missed invalid_number system 404" {
		t.Errorf("record: %s", r)
	}
}

func TestAPhoneThatRingsTooLongIsGivenUp(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--ring-time", "1s"}})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	callee := s.Sipp(rig.Script{Scenario: "cancelled", Port: company.sippPhone(user.SIP), From: user.SIP.Username})
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.ip, From: "+12125550199", Number: way.number, Status: 480}).Wait()
	callee.Wait()
	r := company.record("+12125550199")
	if r.String() != "inbound missed no_answer system 480" || r.Q850 == nil || *r.Q850 != 19 || r.Ring < 1 {
		t.Errorf("record: %s after %d s, Q.850 %v", r, r.Ring, r.Q850)
	}
}

func TestEarlyMediaIsHeardBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	low, ulaw := tone(t, 440)
	carrier := s.Sipp(rig.Script{Scenario: "answer_early", IP: way.ip, Port: way.port, Play: ulaw, Talk: 4 * time.Second})
	phone := s.Phone(user.SIP, rig.PhoneOptions{Say: low})
	phone.Do("dial", "+12125550142")
	phone.Wait("CALL_PROGRESS", "")
	phone.Listen(2 * time.Second)
	if live := company.live(nil); live["status"] != "ringing" || live["answered_at"] != nil {
		t.Errorf("two seconds of audio were heard, but the call is %v", live["status"])
	}
	phone.Wait("CALL_ESTABLISHED", "")
	phone.Do("hangup", "")
	carrier.Wait()
	if r := company.record("+12125550142"); r.String() != "outbound completed caller_hangup caller 0" || r.Ring < 2 {
		t.Errorf("record: %s after ringing for %d s", r, r.Ring)
	}
	hears(t, "the caller", read(t, phone.Close()).PCM[0], 440, 1500*time.Millisecond)
}

func TestTwoForkedAnswersLeaveOneCall(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	carrier := s.Sipp(rig.Script{Scenario: "answer_twice", IP: way.ip, Port: way.port})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "+12125550143", Talk: 1500 * time.Millisecond}).Wait()
	carrier.Wait()
	if r := company.record("+12125550143"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}
