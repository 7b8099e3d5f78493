package e2e

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

func TestTwoHundredCallsAtTwentyPerSecondLoseNothing(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		const calls = 200
		company := newSite(s)
		user := company.AddUser("Ada")
		way := company.carrier(user.ID, nil)
		_, low := tone(t, 440)
		_, high := tone(t, 1000)
		callee := s.Sipp(rig.Script{Scenario: "answer", Calls: calls, Port: company.sippPhone(user.SIP), From: user.SIP.Username,
			Play: high, Quiet: true, Limit: 2 * time.Minute})
		s.Sipp(rig.Script{Scenario: "call", Calls: calls, Rate: 20, IP: way.ip, From: "+12125550177", Number: way.number,
			Play: low, Talk: 1500 * time.Millisecond, Quiet: true, Limit: 2 * time.Minute}).Wait()
		callee.Wait()

		records := company.records(calls, "")
		for _, r := range records {
			if r.String() != "inbound completed caller_hangup caller 0" || r.Talk < 1 || r.Talk > 30 { // sipp on a busy machine talks longer
				t.Errorf("record: %s, %d s", r, r.Talk)
			}
		}
		company.allTold(records)
		for _, r := range []cdr{records[0], records[calls/2], records[calls-1]} {
			both := company.audio(company.recording(r.CallID).ID, "").PCM
			hears(t, "the left channel", both[0], 440, time.Second)
			hears(t, "the right channel", both[1], 1000, time.Second)
		}
	})
}

// allTold waits until every call was told from its start to its end, with a recording, each event once and in order.
func (s *site) allTold(records []cdr) {
	s.T.Helper()
	rig.Until(s.T, "the end of every call", 2*time.Minute, func() bool {
		ended := 0
		for _, e := range s.hooks.Events() {
			if e.Event == "call.ended" {
				ended++
			}
		}
		return ended >= len(records)
	})
	told := map[string][]string{}
	for _, e := range s.hooks.Events() {
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
