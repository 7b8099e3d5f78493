package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
)

// withMind are the settings of a server all of whose engines are the stand-in.
func (e *engines) withMind(more map[string]string) rig.Options {
	env := map[string]string{"SONIQ_VOICE": e.url, "SONIQ_TRANSCRIBER": e.url, "SONIQ_ASSISTANT": e.url, "SONIQ_ALLOW_TARGETS": "127.0.0.0/8", "SONIQ_WRITER": "off"}
	for name, v := range more {
		env[name] = v
	}
	return rig.Options{Env: env}
}

// What callers say to a stand-in.
const (
	openTone   = 350
	policeTone = 1400
	bobsTone   = 1700
)

func noise(hz float64, d time.Duration) []int16 { return media.Tone(hz, -14, d, 8000) }

// A language model talks, uses tools with arguments that are checked, is refused an emergency number, and hands over.
func TestAModelTalksUsesToolsAndMayNotDialEmergencyNumbers(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	e.words = map[float64]string{openTone: "When are you open?", policeTone: "Call the police.", bobsTone: "Get me Bob."}
	to := ""
	call := func(name string, arguments map[string]any) map[string]any {
		return map[string]any{"name": name, "arguments": arguments}
	}
	e.thinks = func(_ int, in map[string]any) ([]string, map[string]any) {
		all := in["messages"].([]any)
		last := all[len(all)-1].(map[string]any)
		text, _ := last["content"].(string)
		switch {
		case last["role"] == "tool" && strings.Contains(text, "emergency"):
			return []string{"Please hang up, and dial it yourself, about parking. "}, nil
		case last["role"] == "tool":
			return []string{"That did not ", "work, parking, sorry."}, nil
		case strings.Contains(text, "open"):
			return []string{"We are open ", "from nine to five, ", "every day."}, nil
		case strings.Contains(text, "police"):
			return nil, call("transfer", map[string]any{"to": "911"})
		}
		return []string{"I will connect you."}, call("transfer", map[string]any{"to": to, "reason": "wants Bob"})
	}
	s := rig.Start(t, e.withMind(nil))
	o := &office{site: newSite(s)}
	o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	way := o.assistantLine(map[string]any{"instructions": "Bob has " + o.bob.Extension + ". The police are 911.", "tools": []string{"transfer"}, "greeting": "How can I help?"})
	to = o.bob.Extension

	v := o.talker(way, "+12125550101")
	at := v.finishes(v.hears(v.hears(0, discloseTone), greetTone))
	v.say(noise(openTone, time.Second))
	at = v.finishes(v.hears(at, answerTone))
	v.say(noise(policeTone, time.Second))
	at = v.finishes(v.hears(at, secondTone))
	v.say(noise(bobsTone, time.Second))
	v.hears(at, bobTone)
	v.line.HangUp()

	r := o.record("+12125550101")
	got, steps, timeline := o.passed(r.CallID)
	if got != "agent:answered" || r.Agent == nil || r.Agent.ID != o.bob.ID {
		t.Errorf("way %s %+v", got, steps)
	}
	tools := agentSteps(t, timeline, "ai_agent.tool")
	if len(tools) != 2 || tools[0]["ok"] != false || !strings.Contains(tools[0]["error"].(string), "emergency") || tools[1]["ok"] != true {
		t.Errorf("tools: %v", tools)
	}
	b, _ := json.Marshal(e.thoughts[0])
	for _, must := range []string{"untrusted_data", "Never say or imply that you are a person", `"name":"transfer"`, `"stream":true`} {
		if !strings.Contains(string(b), must) {
			t.Errorf("the model was not told %s: %s", must, b)
		}
	}
	if strings.Contains(string(b), `"hand_over"`) {
		t.Error("the model may hand over to nobody")
	}
}

// Who finds as many talking as the server lets is handed over at once, and there is room again when one of them has gone.
func TestOnlySoManyTalkToAgentsAtOnce(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	options := e.withMind(nil)
	options.Flags = append(options.Flags, "--max-agents", "1")
	s := rig.Start(t, options)
	o := &office{site: newSite(s)}
	o.bob = o.AddUser("Bob")
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	way := o.assistantLine(map[string]any{"instructions": "Help.", "greeting": "How can I help?", "handoff": "user:" + o.bob.ID})
	first := o.talker(way, "+12125550101")
	first.hears(0, greetTone)

	second := o.talker(way, "+12125550102")
	second.hears(0, bobTone)
	second.line.HangUp()
	if got, steps, _ := o.passed(o.record("+12125550102").CallID); got != "agent:answered" || !strings.Contains(steps[0].Problem, "--max-agents") {
		t.Errorf("the second went %s %+v", got, steps)
	}
	first.line.HangUp()
	o.record("+12125550101")
	third := o.talker(way, "+12125550103")
	third.hears(0, greetTone)
	third.line.HangUp()
}

// A model that fails leaves nobody in silence: the caller is told so, and goes where the flow says.
func TestAModelThatFailsLeavesNobodyInSilence(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	e.broken = true
	e.words = map[float64]string{openTone: "Hello there."}
	s := rig.Start(t, e.withMind(nil))
	o := &office{site: newSite(s)}
	o.bob = o.AddUser("Bob")
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	way := o.line(o.flow(node("agent", "ai_agent", map[string]any{"instructions": "Help.", "greeting": "How can I help?"}, "failed", "bob"),
		node("bob", "transfer", map[string]any{"to": "user:" + o.bob.ID}, "failed", "bye"), node("bye", "hangup", nil)))
	v := o.talker(way, "+12125550101")
	at := v.finishes(v.hears(0, greetTone))
	v.say(noise(openTone, time.Second))
	at = v.hears(at, otherSpeech)
	v.hears(at, bobTone)
	v.line.HangUp()
	if got, steps, _ := o.passed(o.record("+12125550101").CallID); got != "agent:failed bob:answered" || !strings.Contains(steps[0].Problem, "out of order") {
		t.Errorf("way %s %+v", got, steps)
	}
}
