package voiceagent

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/protocol/media/dsp"
)

// Tones that represent texts of callers for the stand-in.
const (
	openingHoursTone = 350
	policeTone       = 1400
	bobsTone         = 1700
)

// callerTone returns a tone that represents a caller's text.
func callerTone(hz float64, d time.Duration) []int16 { return dsp.Tone(hz, -14, d, 8000) }

// A voice agent with a language model talks, and uses tools whose arguments are validated. It is refused an emergency
// number, and hands over.
func TestLanguageModel_ToolsAndEmergencyRefused(t *testing.T) {
	t.Parallel()
	e := fixture.NewAIServer(t)
	e.Meanings = map[float64]string{openingHoursTone: "When are you open?", policeTone: "Call the police.", bobsTone: "Get me Bob."}
	to := ""
	call := func(name string, arguments map[string]any) map[string]any {
		return map[string]any{"name": name, "arguments": arguments}
	}
	e.Reply = func(_ int, in map[string]any) ([]string, map[string]any) {
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
	s := rig.Start(t, e.LanguageModelOptions(nil))
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	way := addAgentCarrier(o, map[string]any{"instructions": "Bob has " + o.Bob.Extension + ". The police are 911.", "tools": []string{"transfer"}, "greeting": "How can I help?"})
	to = o.Bob.Extension

	v := callInSpeaking(o.Org, way, "+12125550101")
	at := v.waitSilence(v.WaitTone(v.WaitTone(0, fixture.DisclosureTone), fixture.AgentGreetingTone))
	v.say(callerTone(openingHoursTone, time.Second))
	at = v.waitSilence(v.WaitTone(at, fixture.AnswerTone))
	v.say(callerTone(policeTone, time.Second))
	at = v.waitSilence(v.WaitTone(at, fixture.SecondTone))
	v.say(callerTone(bobsTone, time.Second))
	v.WaitTone(at, fixture.BobTone)
	v.Line.HangUp()

	r := o.CDR("+12125550101")
	got, steps, timeline := o.FlowPath(r.CallID, "agent:answered")
	if got != "agent:answered" || r.Agent == nil || r.Agent.ID != o.Bob.ID {
		t.Errorf("way %s %+v", got, steps)
	}
	tools := timelineDetails(t, timeline, "ai_agent.tool")
	if len(tools) != 2 || tools[0]["ok"] != false || !strings.Contains(tools[0]["error"].(string), "emergency") || tools[1]["ok"] != true {
		t.Errorf("tools: %v", tools)
	}
	b, _ := json.Marshal(e.Requests[0])
	for _, must := range []string{"untrusted_data", "Never say or imply that you are a person", `"name":"transfer"`, `"stream":true`} {
		if !strings.Contains(string(b), must) {
			t.Errorf("the model was not told %s: %s", must, b)
		}
	}
	if strings.Contains(string(b), `"hand_over"`) {
		t.Error("the model may hand over to nobody")
	}
}

// A caller above the limit of concurrent voice agents is handed over at once. After another caller has left, the next
// one gets a voice agent again.
func TestVoiceAgent_ConcurrencyLimit(t *testing.T) {
	t.Parallel()
	e := fixture.NewAIServer(t)
	options := e.LanguageModelOptions(nil)
	options.Flags = append(options.Flags, "--max-agents", "1")
	s := rig.Start(t, options)
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Bob = o.AddUser("Bob")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	way := addAgentCarrier(o, map[string]any{"instructions": "Help.", "greeting": "How can I help?", "handoff": "user:" + o.Bob.ID})
	first := callInSpeaking(o.Org, way, "+12125550101")
	first.WaitTone(0, fixture.AgentGreetingTone)

	second := callInSpeaking(o.Org, way, "+12125550102")
	second.WaitTone(0, fixture.BobTone)
	second.Line.HangUp()
	if got, steps, _ := o.FlowPath(o.CDR("+12125550102").CallID, "agent:answered"); got != "agent:answered" || !strings.Contains(steps[0].Problem, "--max-agents") {
		t.Errorf("the second went %s %+v", got, steps)
	}
	first.Line.HangUp()
	o.CDR("+12125550101")
	third := callInSpeaking(o.Org, way, "+12125550103")
	third.WaitTone(0, fixture.AgentGreetingTone)
	third.Line.HangUp()
}

// If the language model fails, the caller hears an announcement and follows the failure branch of the flow.
func TestLanguageModel_FailureHandsOver(t *testing.T) {
	t.Parallel()
	e := fixture.NewAIServer(t)
	e.Broken = true
	e.Meanings = map[float64]string{openingHoursTone: "Hello there."}
	s := rig.Start(t, e.LanguageModelOptions(nil))
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Bob = o.AddUser("Bob")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	way := o.AddFlowCarrier(o.AddFlow(fixture.Node("agent", "ai_agent", map[string]any{"instructions": "Help.", "greeting": "How can I help?"}, "failed", "bob"),
		fixture.Node("bob", "transfer", map[string]any{"to": "user:" + o.Bob.ID}, "failed", "bye"), fixture.Node("bye", "hangup", nil)))
	v := callInSpeaking(o.Org, way, "+12125550101")
	at := v.waitSilence(v.WaitTone(0, fixture.AgentGreetingTone))
	v.say(callerTone(openingHoursTone, time.Second))
	at = v.WaitTone(at, fixture.OtherSpeechTone)
	v.WaitTone(at, fixture.BobTone)
	v.Line.HangUp()
	if got, steps, _ := o.FlowPath(o.CDR("+12125550101").CallID, "agent:failed bob:answered"); got != "agent:failed bob:answered" || !strings.Contains(steps[0].Problem, "out of order") {
		t.Errorf("way %s %+v", got, steps)
	}
}
