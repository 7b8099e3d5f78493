package voiceagent

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/protocol/media/wav"
)

// A caller talks to a server of the Realtime protocol: it greets, recognises and answers. When the caller interrupts
// it, its item is truncated at the audio that the caller has heard.
func TestRealtime_BargeIn(t *testing.T) {
	t.Parallel()
	e, x := fixture.NewAIServer(t), newRealtime(t)
	x.means = map[float64]string{openingHoursTone: "When are you open?", bobsTone: "Stop, where can I park?"}
	x.reply = func(said string) spokenReply {
		switch {
		case strings.Contains(said, "How can I help"):
			return spokenReply{words: "How can I help?", hz: fixture.AgentGreetingTone, long: time.Second}
		case strings.Contains(said, "open"):
			return spokenReply{words: strings.Repeat("and also open on days ", 30), hz: fixture.AnswerTone, long: 40 * time.Second}
		}
		return spokenReply{words: "There is parking.", hz: fixture.SecondTone, long: 2 * time.Second}
	}
	s := rig.Start(t, x.options(e))
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Ada = o.AddUser("Ada")
	f := o.AddFlow(fixture.Node("agent", "ai_agent", map[string]any{"instructions": "Be kind.", "greeting": "How can I help?"}, "failed", "bye"), fixture.Node("bye", "hangup", nil))

	var words []int16
	quiet := make([]int16, 8000)
	for range 8 {
		words = append(words, quiet...)
	}
	words = append(words, callerTone(openingHoursTone, time.Second)...)
	for range 6 {
		words = append(words, quiet...)
	}
	words = append(words, callerTone(bobsTone, time.Second)...)
	for range 60 {
		words = append(words, quiet...)
	}
	recorded := filepath.Join(t.TempDir(), "words.wav")
	if err := wav.Write(recorded, wav.Audio{Rate: 8000, PCM: [][]int16{words}}, wav.PCM16); err != nil {
		t.Fatal(err)
	}
	phone := s.Phone(o.Ada.SIP, rig.PhoneOptions{Say: recorded, Auto: true})
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.Ada.Extension, "flow_id": f}, nil)
	phone.Wait("CALL_ESTABLISHED", "")
	rig.Until(t, "the telephone hears the second answer", 60*time.Second, func() bool {
		n := time.Duration(phone.Mark()) * time.Second / 8000
		return n > time.Second && fixture.ToneDuration(phone.Since(0, n-200*time.Millisecond), fixture.SecondTone) > 500*time.Millisecond
	})
	heard := phone.Since(0, time.Duration(phone.Mark())*time.Second/8000-200*time.Millisecond)
	phone.Do("hangup", "")
	for _, hz := range []float64{fixture.DisclosureTone, fixture.AgentGreetingTone, fixture.AnswerTone} {
		if fixture.ToneDuration(heard, hz) < 400*time.Millisecond {
			t.Errorf("%.0f Hz was not heard", hz)
		}
	}
	got, steps, timeline := o.FlowPath(o.CDRs(1, "")[0].CallID, "agent:gone")
	turns := timelineDetails(t, timeline, "ai_agent.turn")
	if got != "agent:gone" || len(turns) != 2 || turns[0]["interrupted"] != true {
		t.Errorf("way %s %+v; turns %v", got, steps, turns)
	}
	cuts := x.events("conversation.item.truncate")
	if len(cuts) == 0 || len(x.wrong) > 0 {
		t.Fatalf("cuts %v, wrong %v", cuts, x.wrong)
	}
	was, told := fixture.ToneDuration(heard, fixture.AnswerTone),
		time.Duration(cuts[len(cuts)-1]["audio_end_ms"].(float64))*time.Millisecond
	for _, c := range cuts { // on a slow machine the caller may have interrupted the greeting too
		told = max(told, time.Duration(c["audio_end_ms"].(float64))*time.Millisecond)
	}
	if told < was-600*time.Millisecond || told > was+1200*time.Millisecond {
		t.Errorf("the server was told that %v were heard, they were %v", told, was)
	}
	if len(x.keys) != 1 || x.keys[0] != "Bearer sk-stand-in gpt-realtime" {
		t.Errorf("asked with %q", x.keys)
	}
	b, _ := json.Marshal(x.events("session.update"))
	for _, must := range []string{"audio/pcmu", "Never say or imply that you are a person", "Be kind.", `"interrupt_response":true`, `"name":"end_call"`} {
		if !strings.Contains(string(b), must) {
			t.Errorf("the server was not told %s: %s", must, b)
		}
	}
	if strings.Contains(s.Log(), "sk-stand-in") {
		t.Error("the key is in the log")
	}
}

// A server of the older form of the protocol, with linear audio, works: the arguments of its tool calls are
// validated, and it hands over to a user.
func TestRealtime_ToolsAndTransfer(t *testing.T) {
	t.Parallel()
	e, x := fixture.NewAIServer(t), newRealtime(t)
	x.old, x.linear = true, true
	x.means = map[float64]string{policeTone: "Call the police.", bobsTone: "Get me Bob."}
	to := ""
	x.reply = func(said string) spokenReply {
		switch {
		case strings.Contains(said, "How can I help"):
			return spokenReply{words: "How can I help?", hz: fixture.AgentGreetingTone, long: time.Second}
		case strings.Contains(said, "police"):
			return spokenReply{tool: "transfer", with: map[string]any{"to": "911"}}
		case strings.Contains(said, "Bob"):
			return spokenReply{words: "I will connect you.", hz: fixture.HandoffTone, long: time.Second, tool: "transfer", with: map[string]any{"to": to, "reason": "wants Bob"}}
		}
		return spokenReply{words: "Please dial it yourself.", hz: fixture.SecondTone, long: time.Second} // after a tool
	}
	s := rig.Start(t, x.options(e))
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Bob = o.AddUser("Bob")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	to = o.Bob.Extension
	way := addAgentCarrier(o, map[string]any{"instructions": "Bob has " + to + ". The police are 911.", "tools": []string{"transfer"}, "greeting": "How can I help?"})

	v := callInSpeaking(o.Org, way, "+12125550101")
	at := v.waitSilence(v.WaitTone(v.WaitTone(0, fixture.DisclosureTone), fixture.AgentGreetingTone))
	v.say(callerTone(policeTone, time.Second))
	at = v.waitSilence(v.WaitTone(at, fixture.SecondTone))
	v.say(callerTone(bobsTone, time.Second))
	at = v.WaitTone(at, fixture.HandoffTone)
	v.WaitTone(at, fixture.BobTone)
	v.Line.HangUp()

	r := o.CDR("+12125550101")
	got, steps, timeline := o.FlowPath(r.CallID, "agent:answered")
	if got != "agent:answered" || r.Agent == nil || r.Agent.ID != o.Bob.ID {
		t.Errorf("way %s %+v; %s", got, steps, timeline)
	}
	tools := timelineDetails(t, timeline, "ai_agent.tool")
	if len(tools) != 2 || tools[0]["ok"] != false || !strings.Contains(tools[0]["error"].(string), "emergency") || tools[1]["ok"] != true {
		t.Errorf("tools: %v", tools)
	}
	b, _ := json.Marshal(x.events("conversation.item.create"))
	if !strings.Contains(string(b), "function_call_output") || !strings.Contains(string(b), "emergency") {
		t.Errorf("the server was not told what came of its tool: %s", b)
	}
	if b, _ = json.Marshal(x.events("session.update")); !strings.Contains(string(b), "pcm16") {
		t.Errorf("what was agreed on: %s", b)
	}
	var notes struct{ Data []struct{ Body string } }
	o.Want(200, "GET", "/calls/"+r.CallID+"/notes", nil, &notes)
	if len(notes.Data) != 1 || !strings.Contains(notes.Data[0].Body, "Get me Bob.") || !strings.Contains(notes.Data[0].Body, "dial it yourself") {
		t.Errorf("what Bob is told: %+v", notes.Data)
	}
}

// If a Realtime server dies in the middle of a call, is unreachable or cannot answer, the caller is handed over.
func TestRealtime_FailureHandsOver(t *testing.T) {
	t.Parallel()
	e, x := fixture.NewAIServer(t), newRealtime(t)
	x.means = map[float64]string{openingHoursTone: "When are you open?", policeTone: "Too much."}
	x.reply = func(said string) spokenReply {
		switch {
		case strings.Contains(said, "How can I help"):
			return spokenReply{words: "How can I help?", hz: fixture.AgentGreetingTone, long: time.Second}
		case strings.Contains(said, "much"):
			return spokenReply{fails: true}
		}
		return spokenReply{words: strings.Repeat("nine to five ", 30), hz: fixture.AnswerTone, long: 20 * time.Second}
	}
	s := rig.Start(t, x.options(e))
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Bob = o.AddUser("Bob")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	way := o.AddFlowCarrier(o.AddFlow(fixture.Node("agent", "ai_agent", map[string]any{"instructions": "Help.", "greeting": "How can I help?"}, "failed", "bob"),
		fixture.Node("bob", "transfer", map[string]any{"to": "user:" + o.Bob.ID}, "failed", "bye"), fixture.Node("bye", "hangup", nil)))
	falls := func(from, why string, before func(v *speakingCaller) int) {
		t.Helper()
		v := callInSpeaking(o.Org, way, from)
		at := before(v)
		v.WaitTone(v.WaitTone(at, fixture.OtherSpeechTone), fixture.BobTone)
		v.Line.HangUp()
		if got, steps, _ := o.FlowPath(o.CDR(from).CallID, "agent:failed bob:answered"); got != "agent:failed bob:answered" || !strings.Contains(steps[0].Problem, why) {
			t.Errorf("way %s %+v", got, steps)
		}
	}
	falls("+12125550101", "Rate limit", func(v *speakingCaller) int {
		at := v.waitSilence(v.WaitTone(0, fixture.AgentGreetingTone))
		v.say(callerTone(policeTone, time.Second))
		return at
	})
	falls("+12125550102", "connection", func(v *speakingCaller) int {
		at := v.waitSilence(v.WaitTone(0, fixture.AgentGreetingTone))
		v.say(callerTone(openingHoursTone, time.Second))
		at = v.WaitTone(at, fixture.AnswerTone)
		x.stop()
		return at
	})
	falls("+12125550103", "503", func(v *speakingCaller) int { return v.WaitTone(0, fixture.DisclosureTone) })
}
