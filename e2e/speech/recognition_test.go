package speech

import (
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/fixture/mcpclient"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// wantRecalledByMCP fails unless an MCP client finds a call by its subject, with its transcript marked as untrusted.
func wantRecalledByMCP(s *fixture.Org, question, id string) {
	s.T.Helper()
	a := mcpclient.Connect(s, "")
	found := a.MustCall("search_call_memory", map[string]any{"query": question, "limit": 3})["results"].([]any)
	if !slices.ContainsFunc(found, func(r any) bool { return r.(map[string]any)["call_id"] == id }) {
		s.T.Errorf("%q does not lead an assistant to %s: %v", question, id, found)
	}
	detail := a.MustCall("get_call_detail", map[string]any{"call_id": id})
	transcript, _ := detail["transcript"].(map[string]any)
	segments, _ := transcript["segments"].([]any)
	outside, _ := detail["untrusted"].([]any)
	if len(segments) == 0 || !slices.Contains(outside, any("transcript.segments[].text")) {
		s.T.Errorf("call %s: %d segments, untrusted %v", id, len(segments), outside)
	}
	a.MustCall("get_caller_memory", map[string]any{"phone": "+12025550123"})
}

// maxErrorRate limits the share of words that each engine may get wrong.
var maxErrorRate = map[string]float64{"sherpa-onnx": 0.2, "pocketsphinx": 0.35}

func TestRecognition_TranscriptSummaryAndSearch(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 75*time.Second, "a whole call is spoken")
	transcribeAndSearch(t, "sherpa-onnx")
}

func TestRecognition_Pocketsphinx(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 75*time.Second, "a whole call is spoken")
	transcribeAndSearch(t, "pocketsphinx", "--transcriber", "pocketsphinx")
}

// transcribeAndSearch makes a call with a dialogue, and checks its transcript, its summary and searches.
func transcribeAndSearch(t *testing.T, engine string, flags ...string) {
	s := rig.Start(t, rig.Options{Flags: flags})
	office := fixture.NewOrg(s)
	calls := []struct{ dialogue, question string }{
		{"d04", "who was charged twice and wants money back"},
		{"d28", "purse thief used a bank card fraudulently"},
	}
	heard := make([]map[string]string, len(calls))
	ids := make([]string, len(calls))
	t.Run("spoken", func(t *testing.T) {
		for i, c := range calls {
			t.Run(c.dialogue, func(t *testing.T) {
				t.Parallel()
				own := office.In(t)
				r := callWithDialogue(own, loadDialogue(t, c.dialogue))
				ids[i], heard[i] = r.CallID, own.TranscriptBy(engine, r)
				wantSummary(own, r)
			})
		}
	})
	for _, side := range []string{"caller", "agent"} {
		var errors, words int
		for i, c := range calls {
			said := loadDialogue(t, c.dialogue).said(side)
			wrong, of := fixture.WordErrors(said, heard[i][side])
			errors, words = errors+wrong, words+of
			t.Logf("%s: %d of %d words of the %s are wrong\n  said:  %s\n  heard: %s", c.dialogue, wrong, of, side, said, heard[i][side])
		}
		if rate := float64(errors) / float64(words); rate > maxErrorRate[engine] {
			t.Errorf("%.1f %% of the %ss' words are wrong, at most %.0f %% may be", 100*rate, side, 100*maxErrorRate[engine])
		}
	}
	for i, c := range calls {
		wantFound(office, c.question, ids[i])
	}
	wantRecalledByMCP(office, calls[0].question, ids[0])
}

// callWithDialogue makes two telephones speak a dialogue and returns the record of the call once its transcript and
// summary are there.
func callWithDialogue(s *fixture.Org, d dialogue) fixture.CDR {
	s.T.Helper()
	ada, bob := s.AddUser("Ada"+d.ID), s.AddUser("Bob"+d.ID)
	callers, agents := d.audio(s.T)
	rest := make([]int16, 60*8000)
	saysCaller, _ := fixture.WriteAudio(s.T, "caller", append(callers, rest...))
	saysAgent, _ := fixture.WriteAudio(s.T, "agent", append(agents, rest...))
	caller := s.Server.Phone(ada.SIP, rig.PhoneOptions{Say: saysCaller})
	callee := s.Server.Phone(bob.SIP, rig.PhoneOptions{Say: saysAgent, Auto: true})
	caller.Dial(bob.Extension)
	callee.Listen(fixture.SampleDuration(len(callers)))
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
	id := s.CDR(ada.Extension).CallID
	s.Webhook.Wait("call.transcription", 6*time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == id })
	return s.CDR(ada.Extension)
}

// wantSummary checks the summary, and that the events contain it.
func wantSummary(s *fixture.Org, r fixture.CDR) {
	s.T.Helper()
	var note struct {
		Status  string
		Summary string `json:"ai_summary"`
	}
	s.Want(200, "GET", "/calls/"+r.CallID+"/summary", nil, &note)
	if note.Status != "completed" || note.Summary == "" || r.Summary == nil || *r.Summary != note.Summary {
		s.T.Errorf("summary: %+v; on the record: %v", note, r.Summary)
	}
	mine := func(e rig.Event) bool { return e.Data["call_id"] == r.CallID }
	if told := s.Webhook.Wait("call.transcription", time.Minute, mine); told.Data["ai_summary"] != note.Summary {
		s.T.Errorf("call.transcription: %v", told.Data)
	}
	ended := s.Webhook.Wait("call.ended", time.Minute, mine)
	slow := ended.Data["enriched"] == false // the summary was not ready within 30 s
	if !slow && (ended.Data["ai_summary"] != note.Summary || ended.Data["recording_url"] == nil) {
		s.T.Errorf("call.ended: %v", ended.Data)
	}
	s.WantEvents(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
}

// wantFound waits until a search with other words returns the call first.
func wantFound(s *fixture.Org, question, callID string) {
	s.T.Helper()
	var found struct {
		Results []struct {
			CallID string `json:"call_id"`
			Text   string
			Score  float64
		}
		TookMS *int `json:"took_ms"`
	}
	rig.Until(s.T, "the call as first answer to "+question, 10*time.Second, func() bool {
		s.Want(200, "POST", "/memory/search", map[string]any{"query": question}, &found)
		return len(found.Results) > 0 && found.Results[0].CallID == callID
	})
	if found.TookMS == nil || found.Results[0].Text == "" || found.Results[0].Score <= 0 {
		s.T.Errorf("%q found %+v", question, found)
	}
}

// said returns the text of one side.
func (d dialogue) said(side string) string {
	var all []string
	for _, turn := range d.Turns {
		if turn.Speaker == side {
			all = append(all, turn.Text)
		}
	}
	return strings.Join(all, " ")
}
