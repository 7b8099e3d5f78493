package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
)

// A telephone that speaks what was recorded talks to a server of the Realtime protocol: it is greeted, heard and answered, and what it speaks
// into is cut where it was heard.
func TestATelephoneTalksToARealtimeServerAndInterruptsIt(t *testing.T) {
	t.Parallel()
	e, x := newEngines(t), newRealtime(t)
	x.means = map[float64]string{openTone: "When are you open?", bobsTone: "Stop, where can I park?"}
	x.reply = func(said string) spokenReply {
		switch {
		case strings.Contains(said, "How can I help"):
			return spokenReply{words: "How can I help?", hz: greetTone, long: time.Second}
		case strings.Contains(said, "open"):
			return spokenReply{words: strings.Repeat("and also open on days ", 30), hz: answerTone, long: 40 * time.Second}
		}
		return spokenReply{words: "There is parking.", hz: secondTone, long: 2 * time.Second}
	}
	s := rig.Start(t, x.with(e))
	o := &office{site: newSite(s)}
	o.ada = o.AddUser("Ada")
	f := o.flow(node("agent", "ai_agent", map[string]any{"instructions": "Be kind.", "greeting": "How can I help?"}, "failed", "bye"), node("bye", "hangup", nil))

	var words []int16
	quiet := make([]int16, 8000)
	for range 8 {
		words = append(words, quiet...)
	}
	words = append(words, noise(openTone, time.Second)...)
	for range 6 {
		words = append(words, quiet...)
	}
	words = append(words, noise(bobsTone, time.Second)...)
	for range 60 {
		words = append(words, quiet...)
	}
	recorded := filepath.Join(t.TempDir(), "words.wav")
	if err := media.WriteWAV(recorded, media.WAV{Rate: 8000, PCM: [][]int16{words}}, media.PCM16); err != nil {
		t.Fatal(err)
	}
	phone := s.Phone(o.ada.SIP, rig.PhoneOptions{Say: recorded, Auto: true})
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.ada.Extension, "flow_id": f}, nil)
	phone.Wait("CALL_ESTABLISHED", "")
	rig.Until(t, "the telephone hears the second answer", 60*time.Second, func() bool {
		n := time.Duration(phone.Mark()) * time.Second / 8000
		return n > time.Second && presence(phone.Since(0, n-200*time.Millisecond), secondTone) > 500*time.Millisecond
	})
	heard := phone.Since(0, time.Duration(phone.Mark())*time.Second/8000-200*time.Millisecond)
	phone.Do("hangup", "")
	for _, hz := range []float64{discloseTone, greetTone, answerTone} {
		if presence(heard, hz) < 400*time.Millisecond {
			t.Errorf("%.0f Hz was not heard", hz)
		}
	}
	got, steps, timeline := o.passed(o.records(1, "")[0].CallID)
	turns := agentSteps(t, timeline, "ai_agent.turn")
	if got != "agent:gone" || len(turns) != 2 || turns[0]["interrupted"] != true {
		t.Errorf("way %s %+v; turns %v", got, steps, turns)
	}
	cuts := x.all("conversation.item.truncate")
	if len(cuts) == 0 || len(x.wrong) > 0 {
		t.Fatalf("cuts %v, wrong %v", cuts, x.wrong)
	}
	was, told := presence(heard, answerTone), time.Duration(cuts[len(cuts)-1]["audio_end_ms"].(float64))*time.Millisecond
	for _, c := range cuts { // the greeting may have been spoken into as well, on a slow machine
		told = max(told, time.Duration(c["audio_end_ms"].(float64))*time.Millisecond)
	}
	if told < was-600*time.Millisecond || told > was+1200*time.Millisecond {
		t.Errorf("the server was told that %v were heard, they were %v", told, was)
	}
	if len(x.keys) != 1 || x.keys[0] != "Bearer sk-stand-in gpt-realtime" {
		t.Errorf("asked with %q", x.keys)
	}
	b, _ := json.Marshal(x.all("session.update"))
	for _, must := range []string{"audio/pcmu", "Never say or imply that you are a person", "Be kind.", `"interrupt_response":true`, `"name":"end_call"`} {
		if !strings.Contains(string(b), must) {
			t.Errorf("the server was not told %s: %s", must, b)
		}
	}
	if strings.Contains(s.Log(), "sk-stand-in") {
		t.Error("the key is in the log")
	}
}

// A server of the older form, with linear sound: its tools are used with arguments that are checked, and it leads to a person.
func TestARealtimeServerUsesToolsAndTransfers(t *testing.T) {
	t.Parallel()
	e, x := newEngines(t), newRealtime(t)
	x.old, x.linear = true, true
	x.means = map[float64]string{policeTone: "Call the police.", bobsTone: "Get me Bob."}
	to := ""
	x.reply = func(said string) spokenReply {
		switch {
		case strings.Contains(said, "How can I help"):
			return spokenReply{words: "How can I help?", hz: greetTone, long: time.Second}
		case strings.Contains(said, "police"):
			return spokenReply{tool: "transfer", with: map[string]any{"to": "911"}}
		case strings.Contains(said, "Bob"):
			return spokenReply{words: "I will connect you.", hz: handTone, long: time.Second, tool: "transfer", with: map[string]any{"to": to, "reason": "wants Bob"}}
		}
		return spokenReply{words: "Please dial it yourself.", hz: secondTone, long: time.Second} // after a tool
	}
	s := rig.Start(t, x.with(e))
	o := &office{site: newSite(s)}
	o.bob = o.AddUser("Bob")
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	to = o.bob.Extension
	way := o.assistantLine(map[string]any{"instructions": "Bob has " + to + ". The police are 911.", "tools": []string{"transfer"}, "greeting": "How can I help?"})

	v := o.talker(way, "+12125550101")
	at := v.finishes(v.hears(v.hears(0, discloseTone), greetTone))
	v.say(noise(policeTone, time.Second))
	at = v.finishes(v.hears(at, secondTone))
	v.say(noise(bobsTone, time.Second))
	at = v.hears(at, handTone)
	v.hears(at, bobTone)
	v.line.HangUp()

	r := o.record("+12125550101")
	got, steps, timeline := o.passed(r.CallID)
	if got != "agent:answered" || r.Agent == nil || r.Agent.ID != o.bob.ID {
		t.Errorf("way %s %+v; %s", got, steps, timeline)
	}
	tools := agentSteps(t, timeline, "ai_agent.tool")
	if len(tools) != 2 || tools[0]["ok"] != false || !strings.Contains(tools[0]["error"].(string), "emergency") || tools[1]["ok"] != true {
		t.Errorf("tools: %v", tools)
	}
	b, _ := json.Marshal(x.all("conversation.item.create"))
	if !strings.Contains(string(b), "function_call_output") || !strings.Contains(string(b), "emergency") {
		t.Errorf("the server was not told what came of its tool: %s", b)
	}
	if b, _ = json.Marshal(x.all("session.update")); !strings.Contains(string(b), "pcm16") {
		t.Errorf("what was agreed on: %s", b)
	}
	var notes struct{ Data []struct{ Body string } }
	o.Want(200, "GET", "/calls/"+r.CallID+"/notes", nil, &notes)
	if len(notes.Data) != 1 || !strings.Contains(notes.Data[0].Body, "Get me Bob.") || !strings.Contains(notes.Data[0].Body, "dial it yourself") {
		t.Errorf("what Bob is told: %+v", notes.Data)
	}
}

// A server that dies in the middle of a call, is not there, or cannot answer leaves nobody in silence.
func TestARealtimeServerThatFailsLeavesNobodyInSilence(t *testing.T) {
	t.Parallel()
	e, x := newEngines(t), newRealtime(t)
	x.means = map[float64]string{openTone: "When are you open?", policeTone: "Too much."}
	x.reply = func(said string) spokenReply {
		switch {
		case strings.Contains(said, "How can I help"):
			return spokenReply{words: "How can I help?", hz: greetTone, long: time.Second}
		case strings.Contains(said, "much"):
			return spokenReply{fails: true}
		}
		return spokenReply{words: strings.Repeat("nine to five ", 30), hz: answerTone, long: 20 * time.Second}
	}
	s := rig.Start(t, x.with(e))
	o := &office{site: newSite(s)}
	o.bob = o.AddUser("Bob")
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	way := o.line(o.flow(node("agent", "ai_agent", map[string]any{"instructions": "Help.", "greeting": "How can I help?"}, "failed", "bob"),
		node("bob", "transfer", map[string]any{"to": "user:" + o.bob.ID}, "failed", "bye"), node("bye", "hangup", nil)))
	falls := func(from, why string, before func(v *speaker) int) {
		t.Helper()
		v := o.talker(way, from)
		at := before(v)
		v.hears(v.hears(at, otherSpeech), bobTone)
		v.line.HangUp()
		if got, steps, _ := o.passed(o.record(from).CallID); got != "agent:failed bob:answered" || !strings.Contains(steps[0].Problem, why) {
			t.Errorf("way %s %+v", got, steps)
		}
	}
	falls("+12125550101", "Rate limit", func(v *speaker) int {
		at := v.finishes(v.hears(0, greetTone))
		v.say(noise(policeTone, time.Second))
		return at
	})
	falls("+12125550102", "connection", func(v *speaker) int {
		at := v.finishes(v.hears(0, greetTone))
		v.say(noise(openTone, time.Second))
		at = v.hears(at, answerTone)
		x.die()
		return at
	})
	falls("+12125550103", "503", func(v *speaker) int { return v.hears(0, discloseTone) })
}
