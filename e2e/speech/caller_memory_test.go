package speech

import (
	"net/url"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

func TestCallerMemory_SpokenAndMissedCalls(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 75*time.Second, "whole calls are spoken")
	rig.Each(t, rig.Options{}, func(t *testing.T, s *rig.Server) {
		company := fixture.NewOrg(s)
		user := company.AddUser("Ada")
		way := company.AddCarrier(user.ID, nil)
		const from = "+12125550166"
		callers, agents := loadDialogue(t, "d28").audio(t)
		_, asks := fixture.WriteAudio(t, "asks", append(callers, make([]int16, 80000)...))
		_, answers := fixture.WriteAudio(t, "answers", append(agents, make([]int16, 80000)...))
		dial := rig.Script{Scenario: "call", IP: way.IP, From: from, Number: way.Number, Play: asks,
			Talk: fixture.SampleDuration(len(callers)) + time.Second}
		callee := rig.Script{Scenario: "answer", Port: company.RegisterSipp(user.SIP), From: user.SIP.Username, Play: answers}

		first := s.Sipp(callee)
		s.Sipp(dial).Wait()
		first.Wait()
		spokenCall := company.CDRs(1, "")[0]
		company.Webhook.Wait("call.ended", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == spokenCall.CallID })
		dial.Scenario, callee.Scenario, callee.Port = "call_cancel", "cancelled", company.RegisterSipp(user.SIP)
		second := s.Sipp(callee)
		s.Sipp(dial).Wait()
		second.Wait()
		company.CDRs(2, "")
		wantMemory(company, from, spokenCall.CallID)
		wantFound(company, "purse thief used a bank card fraudulently", spokenCall.CallID)
		wantFound(company, addNote(company, "Prefers the wheelchair ramp", spokenCall.CallID), spokenCall.CallID)
		wantErased(company, from, spokenCall)
	})
}

// addNote adds a note to a call, and returns a question that it answers.
func addNote(s *fixture.Org, body, callID string) string {
	s.T.Helper()
	s.Want(201, "POST", "/calls/"+callID+"/note", map[string]any{"body": body}, nil)
	return body
}

// wantMemory checks the memory of a caller with a call that was spoken and then one that was missed.
func wantMemory(s *fixture.Org, from, spokenCall string) {
	s.T.Helper()
	var memory struct {
		Phone   string
		Total   int `json:"calls_total"`
		Summary string
		Calls   []struct {
			ID, Direction, Status string
			Summary               *string `json:"ai_summary"`
			RecordingURL          *string `json:"recording_url"`
		}
		TookMS *int `json:"took_ms"`
	}
	rig.Until(s.T, "two calls in the caller's memory", 10*time.Second, func() bool {
		s.Want(200, "GET", "/memory/callers/"+url.PathEscape(from), nil, &memory)
		return memory.Total == 2
	})
	if memory.Phone != from || len(memory.Calls) != 2 || memory.Summary == "" {
		s.T.Fatalf("memory of the caller: %+v", memory)
	}
	if missed := memory.Calls[0]; missed.Status != "missed" || missed.Summary != nil || missed.RecordingURL != nil {
		s.T.Errorf("the newest call: %+v", missed)
	}
	if c := memory.Calls[1]; c.ID != spokenCall || c.Status != "completed" || c.Summary == nil || c.RecordingURL == nil {
		s.T.Errorf("the call before: %+v", c)
	}
	if memory.TookMS == nil || *memory.TookMS < 0 { // make bench measures how long it may take
		s.T.Error("took_ms is missing or negative")
	}
}
