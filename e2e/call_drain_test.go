package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
)

// busyServer is a server with one call in progress, from a carrier to a telephone.
func busyServer(t *testing.T, drain string, caller, callee rig.Script) (s *rig.Server, company *site, way carrier, from, to *rig.Sipp) {
	t.Helper()
	s = rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--drain", drain}})
	company = newSite(s)
	user := company.AddUser("Ada")
	way = company.carrier(user.ID, nil)
	_, caller.Play = tone(t, 440)
	callee.Play = caller.Play
	callee.Port, callee.From = company.sippPhone(user.SIP), user.SIP.Username
	to = s.Sipp(callee)
	caller.IP, caller.From, caller.Number = way.ip, "+12125550177", way.number
	from = s.Sipp(caller)
	company.live(func(c map[string]any) bool { return callee.Scenario == "cancelled" || c["status"] == "in_progress" })
	return s, company, way, from, to
}

// afterwards starts the server again and returns the record of the call.
func afterwards(s *rig.Server, company *site) cdr {
	s.T.Helper()
	if code := s.Wait(30 * time.Second); code != 0 {
		s.T.Errorf("exit code %d, want 0", code)
	}
	s.Start()
	return company.record("+12125550177")
}

func TestAShutdownLetsCallsEndAndTakesNoNewOnes(t *testing.T) {
	t.Parallel()
	s, company, way, from, to := busyServer(t, "25s", rig.Script{Scenario: "call", Talk: 5 * time.Second}, rig.Script{Scenario: "answer"})
	s.Terminate()
	rig.Until(t, "the server says that it is not ready", 5*time.Second, func() bool {
		return company.ready() == 503
	})
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.ip, From: "+12125550178", Number: way.number, Status: 503}).Wait()
	if live := company.live(nil); live["status"] != "in_progress" {
		t.Errorf("the call is %v after a new one was refused", live["status"])
	}
	from.Wait()
	to.Wait()
	r := afterwards(s, company)
	if r.String() != "inbound completed caller_hangup caller 0" || r.Talk < 4 || r.Talk > 7 {
		t.Errorf("record: %s, %d s", r, r.Talk)
	}
	hears(t, "the recording", company.audio(company.recording(r.CallID).ID, "").PCM[0], 440, 4*time.Second)
	company.inOrder(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
}

func TestAShutdownEndsCallsThatOutlastIt(t *testing.T) {
	t.Parallel()
	s, company, _, from, to := busyServer(t, "2s", rig.Script{Scenario: "call_until_bye"}, rig.Script{Scenario: "answer"})
	s.Terminate()
	from.Wait()
	to.Wait()
	r := afterwards(s, company)
	if r.String() != "inbound completed shutdown system 0" || r.Talk < 2 || r.Talk > 6 {
		t.Errorf("record: %s, %d s", r, r.Talk)
	}
	hears(t, "the recording", company.audio(company.recording(r.CallID).ID, "").PCM[0], 440, 1500*time.Millisecond)
	company.inOrder(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
}

func TestAShutdownEndsCallsThatStillRing(t *testing.T) {
	t.Parallel()
	s, company, _, from, to := busyServer(t, "1s", rig.Script{Scenario: "call_refused", Status: 480}, rig.Script{Scenario: "cancelled"})
	s.Terminate()
	from.Wait()
	to.Wait()
	r := afterwards(s, company)
	if r.String() != "inbound missed shutdown system 0" {
		t.Errorf("record: %s", r)
	}
	company.missed(r.CallID)
}
