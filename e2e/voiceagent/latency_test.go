package voiceagent

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// Measures the time from the caller's last word to the first sound of the reply, at the caller, with engines of known
// delay.
func TestVoiceAgent_GapBetweenTurns(t *testing.T) {
	if os.Getenv("SONIQ_BENCH") == "" {
		t.Skip("set SONIQ_BENCH=1 to measure")
	}
	for _, c := range []struct {
		name                string
		hear, think, speaks time.Duration
		ear                 string // "": the stand-in hears
	}{
		{"engines at once", 0, 0, 0, ""},
		{"engines with delays", 60 * time.Millisecond, 100 * time.Millisecond, 60 * time.Millisecond, ""},
		{"builtin hears, engines with delays", 0, 100 * time.Millisecond, 60 * time.Millisecond, "builtin"},
		{"pocketsphinx hears, engines with delays", 0, 100 * time.Millisecond, 60 * time.Millisecond, "pocketsphinx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := fixture.NewAIServer(t)
			e.Meanings = map[float64]string{openingHoursTone: "When are you open?"}
			e.Reply = func(int, map[string]any) ([]string, map[string]any) {
				return []string{"We are open from nine to five. "}, nil
			}
			question, more := callerTone(openingHoursTone, time.Second), map[string]string{}
			if c.ear != "" {
				question, more["SONIQ_TRANSCRIBER"] = trimmed(fixture.Synthesize(t, "rms", "When are you open?")), c.ear
			}
			s := rig.Start(t, e.LanguageModelOptions(more))
			o := &fixture.Office{Org: fixture.NewOrg(s)}
			way := addAgentCarrier(o, map[string]any{"instructions": "Help.", "greeting": "How can I help?"})
			v := callInSpeaking(o.Org, way, "+12125550101")
			at := v.waitSilence(v.WaitTone(v.WaitTone(0, fixture.DisclosureTone), fixture.AgentGreetingTone))
			e.TranscribeDelay, e.ChatDelay, e.SpeechDelay = c.hear, c.think, c.speaks
			var gaps []time.Duration
			for range 15 {
				ended := v.say(question)
				gaps = append(gaps, v.firstSoundAfter(ended).Sub(ended))
				at = v.waitSilence(v.WaitTone(at, fixture.AnswerTone))
			}
			v.Line.HangUp()
			slices.Sort(gaps)
			engines := c.hear + c.think + c.speaks
			fmt.Printf("%s (%v together): gap p50 %v, p90 %v, most %v\n", c.name, engines, gaps[len(gaps)/2].Round(time.Millisecond),
				gaps[len(gaps)*9/10].Round(time.Millisecond), gaps[len(gaps)-1].Round(time.Millisecond))
			_, _, timeline := o.FlowPath(o.CDR("+12125550101").CallID)
			for _, stage := range []string{"understood_ms", "endpoint_ms", "thought_ms", "voiced_ms", "audio_ms"} {
				var all []float64
				for _, x := range timelineDetails(t, timeline, "ai_agent.turn") {
					if ms, ok := x[stage].(float64); ok {
						all = append(all, ms)
					}
				}
				slices.Sort(all)
				if len(all) > 0 {
					fmt.Printf("  %s p50 %.0f p90 %.0f\n", stage, all[len(all)/2], all[len(all)*9/10])
				}
			}
		})
	}
}

// firstSoundAfter returns when the first sound was heard after a moment.
func (x *speakingCaller) firstSoundAfter(moment time.Time) (at time.Time) {
	x.T.Helper()
	rig.Until(x.T, "a sound", 30*time.Second, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, t := range x.loud {
			if t.After(moment) {
				at = t
				return true
			}
		}
		return false
	})
	return at
}
