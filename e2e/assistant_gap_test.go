package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// How long it takes from a caller's last word to the first sound of the answer, at the caller's, with engines whose delays are known.
func TestGapBetweenTurns(t *testing.T) {
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
			e := newEngines(t)
			e.words = map[float64]string{openTone: "When are you open?"}
			e.thinks = func(int, map[string]any) ([]string, map[string]any) {
				return []string{"We are open from nine to five. "}, nil
			}
			question, more := noise(openTone, time.Second), map[string]string{}
			if c.ear != "" {
				question, more["SONIQ_TRANSCRIBER"] = trimmed(say(t, "rms", "When are you open?")), c.ear
			}
			s := rig.Start(t, e.withMind(more))
			o := &office{site: newSite(s)}
			way := o.assistantLine(map[string]any{"instructions": "Help.", "greeting": "How can I help?"})
			v := o.talker(way, "+12125550101")
			at := v.finishes(v.hears(v.hears(0, discloseTone), greetTone))
			e.hearTime, e.think, e.speak = c.hear, c.think, c.speaks
			var gaps []time.Duration
			for range 15 {
				ended := v.say(question)
				gaps = append(gaps, v.soundsAfter(ended).Sub(ended))
				at = v.finishes(v.hears(at, answerTone))
			}
			v.line.HangUp()
			slices.Sort(gaps)
			engines := c.hear + c.think + c.speaks
			fmt.Printf("%s (%v together): gap p50 %v, p90 %v, most %v\n", c.name, engines, gaps[len(gaps)/2].Round(time.Millisecond),
				gaps[len(gaps)*9/10].Round(time.Millisecond), gaps[len(gaps)-1].Round(time.Millisecond))
			_, _, timeline := o.passed(o.record("+12125550101").CallID)
			for _, stage := range []string{"understood_ms", "endpoint_ms", "thought_ms", "voiced_ms", "audio_ms"} {
				var all []float64
				for _, x := range agentSteps(t, timeline, "ai_agent.turn") {
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
