package voiceagent

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/fixture/database"
	"soniq/e2e/rig"
)

// agentTranscript is the part of a transcript that tests read.
type agentTranscript struct {
	Status   string
	Text     string
	Engine   struct{ Name string }
	Segments []struct {
		Speaker string
		Channel int
		StartMS int `json:"start_ms"`
		EndMS   int `json:"end_ms"`
		Text    string
	}
}

// lines returns the transcript as text.
func (x agentTranscript) lines() string {
	var b strings.Builder
	for _, g := range x.Segments {
		fmt.Fprintf(&b, "%s: %s\n", g.Speaker, g.Text)
	}
	return b.String()
}

// The caller's words to a voice agent are recorded if the organisation records, and streamed live. They are in the call's transcript
// together with the words to people. Erasing the caller's number removes all of them.
func TestTranscript_RecordedStreamedAndErased(t *testing.T) {
	t.Parallel()
	e := fixture.NewAIServer(t)
	e.Meanings = map[float64]string{openingHoursTone: "When are you open?", bobsTone: "Get me Bob for the zanzibar file.", fixture.BobTone: "Bob speaking."}
	to := ""
	e.Reply = func(_ int, in map[string]any) ([]string, map[string]any) {
		all := in["messages"].([]any)
		if text, _ := all[len(all)-1].(map[string]any)["content"].(string); strings.Contains(text, "open") {
			return []string{"We are open from nine to five. "}, nil
		}
		return []string{"I will connect you."}, map[string]any{"name": "transfer", "arguments": map[string]any{"to": to}}
	}
	rig.Each(t, e.LanguageModelOptions(nil), func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Bob = o.AddUser("Bob")
		o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
		to = o.Bob.Extension
		way := addAgentCarrier(o, map[string]any{"instructions": "Bob has " + to + ".", "tools": []string{"transfer"}, "greeting": "How can I help?"})

		v := callInSpeaking(o.Org, way, "+12125550101")
		at := v.waitSilence(v.WaitTone(v.WaitTone(0, fixture.DisclosureTone), fixture.AgentGreetingTone))
		v.say(callerTone(openingHoursTone, time.Second))
		at = v.waitSilence(v.WaitTone(at, fixture.AnswerTone))
		live := o.LiveCall(func(c map[string]any) bool { return c["stage"] == "ai_agent" })
		var now agentTranscript
		rig.Until(t, "the words while they are said", 30*time.Second, func() bool {
			r := o.Do("GET", "/calls/"+live["id"].(string)+"/transcript", nil)
			return r.Status == 200 && json.Unmarshal(r.Body, &now) == nil && strings.Contains(now.lines(), "caller: When are you open?\n")
		})
		if now.Status != "live" || !strings.HasPrefix(now.lines(), "ai: You are speaking with an automated assistant. How can I help?\n") {
			t.Errorf("while it was said: %+v", now)
		}
		v.say(callerTone(bobsTone, time.Second))
		at = v.WaitTone(v.WaitTone(at, fixture.HandoffTone), fixture.BobTone)
		v.Since(at, 4*time.Second)
		v.Line.HangUp()

		r := o.CDR("+12125550101")
		if got, steps, timeline := o.FlowPath(r.CallID, "agent:answered"); got != "agent:answered" {
			t.Fatalf("way %s %+v; %s", got, steps, timeline)
		}
		var x agentTranscript
		rig.Until(t, "the transcript", 60*time.Second, func() bool {
			r := o.Do("GET", "/calls/"+r.CallID+"/transcript", nil)
			return r.Status == 200 && json.Unmarshal(r.Body, &x) == nil && x.Status != "live" && x.Status != "queued" &&
				x.Status != "processing"
		})
		want := "ai: You are speaking with an automated assistant. How can I help?\ncaller: When are you open?\nai: We are open from nine to five.\n" +
			"caller: Get me Bob for the zanzibar file.\nai: I will connect you.\nagent: Bob speaking.\n"
		if x.Status != "completed" || x.lines() != want {
			t.Errorf("transcript %s:\n%s", x.Status, x.lines())
		}
		for i, g := range x.Segments {
			if g.EndMS < g.StartMS || i > 0 && g.StartMS < x.Segments[i-1].StartMS {
				t.Errorf("times of %+v", x.Segments)
			}
		}
		w := o.RecordingAudio(o.Recording(r.CallID).ID, "")
		var sound [][]int16
		for _, side := range w.PCM {
			sound = append(sound, fixture.Resample8000(side, w.Rate))
		}
		if len(sound) != 2 || fixture.ToneDuration(sound[0], openingHoursTone) < 800*time.Millisecond ||
			fixture.ToneDuration(sound[0], fixture.AnswerTone) > 200*time.Millisecond {
			t.Errorf("the left channel has %v of what the caller said", fixture.ToneDuration(sound[0], openingHoursTone))
		}
		for _, hz := range []float64{fixture.DisclosureTone, fixture.AgentGreetingTone, fixture.AnswerTone, fixture.HandoffTone,
			fixture.BobTone} {
			if fixture.ToneDuration(sound[1], hz) < 500*time.Millisecond {
				t.Errorf("the right channel has %v of %.0f Hz", fixture.ToneDuration(sound[1], hz), hz)
			}
		}
		if where := database.TablesContaining(o.Org, "zanzibar"); len(where) < 3 {
			t.Errorf("before it is erased it is found in %v only", where)
		}
		o.Want(202, "DELETE", "/memory/callers/"+url.PathEscape("+12125550101")+"?reason=asked", nil, nil)
		rig.Until(t, "what was said is nowhere", 60*time.Second, func() bool { return len(database.TablesContaining(o.Org, "zanzibar")) == 0 })
		if strings.Contains(s.Log(), "level=ERROR") {
			t.Error("errors in the log")
		}
	})
}

// If the organisation does not record, the transcript contains the words nevertheless, those of a Realtime server
// included.
func TestTranscript_Realtime(t *testing.T) {
	t.Parallel()
	e, x := fixture.NewAIServer(t), newRealtime(t)
	x.means = map[float64]string{openingHoursTone: "When are you open?"}
	x.reply = func(said string) spokenReply {
		if strings.Contains(said, "How can I help") {
			return spokenReply{words: "How can I help?", hz: fixture.AgentGreetingTone, long: time.Second}
		}
		return spokenReply{words: "We are open from nine to five.", hz: fixture.AnswerTone, long: time.Second}
	}
	s := rig.Start(t, x.options(e))
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Want(200, "PATCH", "/organization", map[string]any{"recording": map[string]any{"mode": "off"}}, nil)
	way := addAgentCarrier(o, map[string]any{"instructions": "Help.", "greeting": "How can I help?"})
	opened, told := make(chan struct{}), make(chan []fixture.StreamEvent, 1)
	go func() {
		told <- o.ReadStream("", func() { close(opened) }, func(e fixture.StreamEvent) bool {
			return e.Type == "call.transcript_segment" && strings.Contains(e.Data, "nine to five")
		})
	}()
	<-opened
	v := callInSpeaking(o.Org, way, "+12125550101")
	at := v.waitSilence(v.WaitTone(v.WaitTone(0, fixture.DisclosureTone), fixture.AgentGreetingTone))
	v.say(callerTone(openingHoursTone, time.Second))
	v.waitSilence(v.WaitTone(at, fixture.AnswerTone))
	v.Line.HangUp()
	var streamed []string
	for _, e := range <-told {
		var x struct{ Speaker, Text string }
		if e.Type == "call.transcript_segment" && json.Unmarshal([]byte(e.Data), &x) == nil {
			streamed = append(streamed, x.Speaker+": "+x.Text)
		}
	}
	r := o.CDR("+12125550101")
	var got agentTranscript
	rig.Until(t, "the transcript", 60*time.Second, func() bool {
		r := o.Do("GET", "/calls/"+r.CallID+"/transcript", nil)
		return r.Status == 200 && json.Unmarshal(r.Body, &got) == nil && got.Status == "completed"
	})
	want := "ai: You are speaking with an automated assistant.\nai: How can I help?\ncaller: When are you open?\nai: We are open from nine to five.\n"
	if got.lines() != want || got.Engine.Name != "voice-agent" {
		t.Errorf("transcript of %s:\n%s", got.Engine.Name, got.lines())
	}
	if all := strings.Join(streamed, "\n") + "\n"; all != want {
		t.Errorf("streamed:\n%s", all)
	}
	if all := o.CDRs(1, ""); all[0].RecordingURL != nil {
		t.Errorf("it was recorded: %v", *all[0].RecordingURL)
	}
}
