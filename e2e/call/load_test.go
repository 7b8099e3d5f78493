package call

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// loadCalls is the number of calls of TestLoad_CallsAt20PerSecond in make test. Soak runs make 200.
const loadCalls = 60

func TestLoad_CallsAt20PerSecond(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		calls := loadCalls
		if fixture.Soak() {
			calls = 200
		}
		company := fixture.NewOrg(s)
		user := company.AddUser("Ada")
		way := company.AddCarrier(user.ID, nil)
		_, low := fixture.Tone(t, 440)
		_, high := fixture.Tone(t, 1000)
		callee := s.Sipp(rig.Script{Scenario: "answer", Calls: calls, Port: company.RegisterSipp(user.SIP), From: user.SIP.Username,
			Play: high, Quiet: true, Limit: 2 * time.Minute})
		s.Sipp(rig.Script{Scenario: "call", Calls: calls, Rate: 20, IP: way.IP, From: "+12125550177", Number: way.Number,
			Play: low, Talk: 1500 * time.Millisecond, Quiet: true, Limit: 2 * time.Minute}).Wait()
		callee.Wait()

		records := company.CDRs(calls, "")
		for _, r := range records {
			// sipp on a busy machine talks longer
			if r.String() != "inbound completed caller_hangup caller 0" || r.Talk < 1 || r.Talk > 30 {
				t.Errorf("record: %s, %d s", r, r.Talk)
			}
		}
		wantAllEvents(company, records)
		for _, r := range []fixture.CDR{records[0], records[calls/2], records[calls-1]} {
			both := company.RecordingAudio(company.Recording(r.CallID).ID, "").PCM
			fixture.Hears(t, "the left channel", both[0], 440, time.Second)
			fixture.Hears(t, "the right channel", both[1], 1000, time.Second)
		}
	})
}

// wantAllEvents waits until every call has all its events and a recording, each event once and in order.
func wantAllEvents(s *fixture.Org, records []fixture.CDR) {
	s.T.Helper()
	rig.Until(s.T, "the end of every call", 2*time.Minute, func() bool {
		ended := 0
		for _, e := range s.Webhook.Events() {
			if e.Event == "call.ended" {
				ended++
			}
		}
		return ended >= len(records)
	})
	told := map[string][]string{}
	for _, e := range s.Webhook.Events() {
		if id, ok := e.Data["call_id"].(string); ok {
			told[id] = append(told[id], e.Event)
		}
		if e.Event == "call.recording" && e.Data["status"] != "available" {
			s.T.Errorf("recording: %v", e.Data)
		}
	}
	const want = "call.started call.answered call.recording call.transcription call.ended"
	for _, r := range records {
		if got := strings.Join(told[r.CallID], " "); got != want {
			s.T.Errorf("events of %s: %s", r.CallID, got)
		}
	}
}
