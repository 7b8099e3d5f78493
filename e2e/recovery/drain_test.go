package recovery

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// busyServer starts a server with one call in progress, from a carrier to a telephone.
func busyServer(
	t *testing.T, drain string, caller, callee rig.Script,
) (s *rig.Server, company *fixture.Org, way fixture.Carrier, from, to *rig.Sipp) {
	t.Helper()
	s = rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--drain", drain}})
	company = fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way = company.AddCarrier(user.ID, nil)
	_, caller.Play = fixture.Tone(t, 440)
	callee.Play = caller.Play
	callee.Port, callee.From = company.RegisterSipp(user.SIP), user.SIP.Username
	to = s.Sipp(callee)
	caller.IP, caller.From, caller.Number = way.IP, "+12125550177", way.Number
	from = s.Sipp(caller)
	company.LiveCall(func(c map[string]any) bool { return callee.Scenario == "cancelled" || c["status"] == "in_progress" })
	return s, company, way, from, to
}

func TestDrain_CallsEndAndNewOnesRefused(t *testing.T) {
	t.Parallel()
	s, company, way, from, to := busyServer(t, "25s", rig.Script{Scenario: "call", Talk: 5 * time.Second}, rig.Script{Scenario: "answer"})
	s.Terminate()
	rig.Until(t, "the server says that it is not ready", 5*time.Second, func() bool {
		return company.ReadyStatus() == 503
	})
	s.Sipp(rig.Script{Scenario: "call_refused", IP: way.IP, From: "+12125550178", Number: way.Number, Status: 503}).Wait()
	if live := company.LiveCall(nil); live["status"] != "in_progress" {
		t.Errorf("the call is %v after a new one was refused", live["status"])
	}
	from.Wait()
	to.Wait()
	r := fixture.CDRAfterRestart(s, company)
	if r.String() != "inbound completed caller_hangup caller 0" || r.Talk < 4 || r.Talk > 7 {
		t.Errorf("record: %s, %d s", r, r.Talk)
	}
	fixture.Hears(t, "the recording", company.RecordingAudio(company.Recording(r.CallID).ID, "").PCM[0], 440, 4*time.Second)
	company.WantEvents(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
}

func TestDrain_TimeoutEndsCalls(t *testing.T) {
	t.Parallel()
	s, company, _, from, to := busyServer(t, "2s", rig.Script{Scenario: "call_until_bye"}, rig.Script{Scenario: "answer"})
	s.Terminate()
	from.Wait()
	to.Wait()
	r := fixture.CDRAfterRestart(s, company)
	if r.String() != "inbound completed shutdown system 0" || r.Talk < 2 || r.Talk > 6 {
		t.Errorf("record: %s, %d s", r, r.Talk)
	}
	fixture.Hears(t, "the recording", company.RecordingAudio(company.Recording(r.CallID).ID, "").PCM[0], 440, 1500*time.Millisecond)
	company.WantEvents(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
}

func TestDrain_RingingCallsEnded(t *testing.T) {
	t.Parallel()
	s, company, _, from, to := busyServer(t, "1s", rig.Script{Scenario: "call_refused", Status: 480}, rig.Script{Scenario: "cancelled"})
	s.Terminate()
	from.Wait()
	to.Wait()
	r := fixture.CDRAfterRestart(s, company)
	if r.String() != "inbound missed shutdown system 0" {
		t.Errorf("record: %s", r)
	}
	company.WantMissed(r.CallID)
}
