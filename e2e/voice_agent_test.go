package e2e

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// faq is what a scripted agent is told.
const faq = `You work for a dentist.
Q: What are your opening hours? | opening hours | when are you open
A: We are open from nine to five.
Q: Where can I park? | parking
A: There is free parking behind the house, for all of our patients, the whole day, every day of the week, and also in the evening.`

// withVoice are the settings of a server whose voice is a stand-in.
func (e *engines) withVoice() rig.Options {
	return rig.Options{Env: map[string]string{"SONIQ_VOICE": e.url, "SONIQ_ALLOW_TARGETS": "127.0.0.0/8"}}
}

// A caller speaks with the scripted agent: it says what it is, answers, is interrupted, and hands over.
func TestAScriptedAgentAnswersAndHandsOver(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	rig.Each(t, e.withVoice(), func(t *testing.T, s *rig.Server) {
		o := &office{site: newSite(s)}
		o.bob = o.AddUser("Bob")
		o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
		way := o.assistantLine(map[string]any{"instructions": faq, "handoff": "user:" + o.bob.ID})

		v := o.talker(way, "+12125550101")
		at := v.hears(0, discloseTone)
		at = v.finishes(v.hears(at, greetTone))
		v.say(trimmed(say(t, "rms", "What are your opening hours?")))
		at = v.finishes(v.hears(at, answerTone))
		v.say(trimmed(say(t, "rms", "Where can I park?")))
		at = v.hears(at, secondTone)
		v.say(trimmed(say(t, "rms", "I want to speak to a person please."))) // into the answer, which takes five seconds
		if heard := v.Since(at, 10*time.Second); presence(heard, secondTone) > 4*time.Second {
			t.Errorf("the agent spoke on for %s when it was interrupted", presence(heard, secondTone))
		}
		v.hears(at, handTone)
		v.hears(at, bobTone)
		v.line.HangUp()

		r := o.record("+12125550101")
		got, steps, timeline := o.passed(r.CallID)
		if got != "agent:answered" || r.Agent == nil || r.Agent.ID != o.bob.ID {
			t.Fatalf("way %s %+v; %s", got, steps, timeline)
		}
		turns := agentSteps(t, timeline, "ai_agent.turn")
		if len(turns) != 3 || turns[0]["interrupted"] != false || turns[1]["interrupted"] != true {
			t.Errorf("turns: %v", turns)
		}
		for _, x := range turns[:2] {
			for _, stage := range []string{"understood_ms", "endpoint_ms", "thought_ms", "voiced_ms", "audio_ms"} {
				if _, ok := x[stage].(float64); !ok {
					t.Errorf("a turn without %s: %v", stage, x)
				}
			}
		}
		var notes struct{ Data []struct{ Body string } }
		o.Want(200, "GET", "/calls/"+r.CallID+"/notes", nil, &notes)
		if len(notes.Data) != 1 || !strings.Contains(notes.Data[0].Body, "person") || !strings.Contains(notes.Data[0].Body, "nine to five") ||
			strings.Contains(notes.Data[0].Body, "evening") || !strings.Contains(notes.Data[0].Body, "There is") {
			t.Errorf("what Bob is told: %+v", notes.Data)
		}
		if strings.Contains(s.Log(), "level=ERROR") {
			t.Error("errors in the log")
		}
	})
}
