package e2e

import (
	"net/url"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// spokenText is a transcript as the API gives it.
type spokenText struct {
	Status   string
	Engine   struct{ Name string }
	Segments []struct {
		Speaker string
		Channel int
		StartMS int `json:"start_ms"`
		EndMS   int `json:"end_ms"`
		Text    string
		Words   []struct {
			StartMS int `json:"start_ms"`
			EndMS   int `json:"end_ms"`
		}
	}
}

// The recognisers on this machine, by the name of their engine: the share of words each may get wrong.
var mostErrors = map[string]float64{"sherpa-onnx": 0.2, "pocketsphinx": 0.35}

func TestWhatIsSpokenOnACallIsWrittenDownAndFound(t *testing.T) {
	t.Parallel()
	spokenAndFound(t, "sherpa-onnx")
}

func TestPocketsphinxListensWhereItIsChosen(t *testing.T) {
	t.Parallel()
	spokenAndFound(t, "pocketsphinx", "--transcriber", "pocketsphinx")
}

func spokenAndFound(t *testing.T, engine string, flags ...string) {
	s := rig.Start(t, rig.Options{Flags: flags})
	office := newSite(s)
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
				own := office.in(t)
				r := own.speak(dialogueOf(t, c.dialogue))
				ids[i], heard[i] = r.CallID, own.transcriptBy(engine, r)
				own.summarised(r)
			})
		}
	})
	for _, side := range []string{"caller", "agent"} {
		var errors, words int
		for i, c := range calls {
			said := dialogueOf(t, c.dialogue).said(side)
			wrong, of := wordErrors(said, heard[i][side])
			errors, words = errors+wrong, words+of
			t.Logf("%s: %d of %d words of the %s are wrong\n  said:  %s\n  heard: %s", c.dialogue, wrong, of, side, said, heard[i][side])
		}
		if rate := float64(errors) / float64(words); rate > mostErrors[engine] {
			t.Errorf("%.1f %% of the %ss' words are wrong, at most %.0f %% may be", 100*rate, side, 100*mostErrors[engine])
		}
	}
	for i, c := range calls {
		office.finds(c.question, ids[i])
	}
	office.recalls(calls[0].question, ids[0])
}

// speak has two telephones speak a dialogue and returns the record of the call when everything is known of it.
func (s *site) speak(d dialogue) cdr {
	s.T.Helper()
	ada, bob := s.AddUser("Ada"+d.ID), s.AddUser("Bob"+d.ID)
	callers, agents := d.voices(s.T)
	rest := make([]int16, 60*8000)
	saysCaller, _ := spoken(s.T, "caller", append(callers, rest...))
	saysAgent, _ := spoken(s.T, "agent", append(agents, rest...))
	caller := s.Server.Phone(ada.SIP, rig.PhoneOptions{Say: saysCaller})
	callee := s.Server.Phone(bob.SIP, rig.PhoneOptions{Say: saysAgent, Auto: true})
	caller.Dial(bob.Extension)
	callee.Listen(seconds(len(callers)))
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
	id := s.record(ada.Extension).CallID
	s.hooks.Wait("call.transcription", 6*time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == id })
	return s.record(ada.Extension)
}

// transcript returns what the builtin engine understood of either side.
func (s *site) transcript(r cdr) map[string]string {
	s.T.Helper()
	return s.transcriptBy("sherpa-onnx", r)
}

// transcriptBy returns what an engine understood of either side. Only pocketsphinx knows when each word was said.
func (s *site) transcriptBy(engine string, r cdr) map[string]string {
	s.T.Helper()
	var got spokenText
	s.Want(200, "GET", "/calls/"+r.CallID+"/transcript?words=true", nil, &got)
	if got.Status != "completed" || r.TranscriptID == nil || got.Engine.Name != engine {
		s.T.Fatalf("transcript %v is %s by %q", r.TranscriptID, got.Status, got.Engine.Name)
	}
	heard := map[string]string{}
	for _, g := range got.Segments {
		heard[g.Speaker] += g.Text + " "
		if (g.Speaker == "caller") != (g.Channel == 0) || (len(g.Words) > 0) != (engine == "pocketsphinx") || g.EndMS <= g.StartMS || g.EndMS > (r.Talk+2)*1000 {
			s.T.Errorf("segment: %+v of a call of %d s", g, r.Talk)
		}
	}
	return heard
}

// summarised checks the note, and that the events carry it.
func (s *site) summarised(r cdr) {
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
	if told := s.hooks.Wait("call.transcription", time.Minute, mine); told.Data["ai_summary"] != note.Summary {
		s.T.Errorf("call.transcription: %v", told.Data)
	}
	ended := s.hooks.Wait("call.ended", time.Minute, mine)
	if ended.Data["enriched"] == false { // the machine was too slow to have the summary within 30 s
		s.inOrder(r.CallID, "call.started", "call.answered", "call.recording", "call.ended", "call.transcription")
		return
	}
	if ended.Data["ai_summary"] != note.Summary || ended.Data["recording_url"] == nil {
		s.T.Errorf("call.ended: %v", ended.Data)
	}
	s.inOrder(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
}

// finds waits until a search in other words names the call first.
func (s *site) finds(question, callID string) {
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

func TestWhatIsRememberedOfACaller(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{}, func(t *testing.T, s *rig.Server) {
		company := newSite(s)
		user := company.AddUser("Ada")
		way := company.carrier(user.ID, nil)
		const from = "+12125550166"
		callers, agents := dialogueOf(t, "d28").voices(t)
		_, asks := spoken(t, "asks", append(callers, make([]int16, 80000)...))
		_, answers := spoken(t, "answers", append(agents, make([]int16, 80000)...))
		dial := rig.Script{Scenario: "call", IP: way.ip, From: from, Number: way.number, Play: asks, Talk: seconds(len(callers)) + time.Second}
		callee := rig.Script{Scenario: "answer", Port: company.sippPhone(user.SIP), From: user.SIP.Username, Play: answers}

		first := s.Sipp(callee)
		s.Sipp(dial).Wait()
		first.Wait()
		spokenCall := company.records(1, "")[0]
		company.hooks.Wait("call.ended", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == spokenCall.CallID })
		dial.Scenario, callee.Scenario, callee.Port = "call_cancel", "cancelled", company.sippPhone(user.SIP)
		second := s.Sipp(callee)
		s.Sipp(dial).Wait()
		second.Wait()
		company.records(2, "")
		company.remembers(from, spokenCall.CallID)
		company.finds("purse thief used a bank card fraudulently", spokenCall.CallID)
		company.finds(company.notes("Prefers the wheelchair ramp", spokenCall.CallID), spokenCall.CallID)
		company.forgets(from, spokenCall)
	})
}

// notes writes a note about a call, and returns how to ask for it.
func (s *site) notes(body, callID string) string {
	s.T.Helper()
	s.Want(201, "POST", "/calls/"+callID+"/note", map[string]any{"body": body}, nil)
	return body
}

// remembers checks the memory of a caller with a call that was spoken and then one that was missed.
func (s *site) remembers(from, spokenCall string) {
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
	if memory.TookMS == nil || *memory.TookMS > 200 {
		s.T.Errorf("took_ms: %v", memory.TookMS)
	}
}
