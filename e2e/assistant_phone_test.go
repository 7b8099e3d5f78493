package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
)

// A telephone calls with recorded speech; others are silent, or press 0.
func TestATelephoneTalksToAnAgentAndOthersAreSilentOrPressZero(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	s := rig.Start(t, e.withVoice())
	o := &office{site: newSite(s)}
	o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	f := o.flow(node("agent", "ai_agent", map[string]any{"instructions": faq, "handoff": "user:" + o.bob.ID, "greeting": "How can I help?"}, "failed", "bye"),
		node("bye", "hangup", nil))

	var words []int16
	quiet := make([]int16, 8*8000)
	words = append(words, quiet...)
	words = append(words, trimmed(say(t, "rms", "What are your opening hours?"))...)
	words = append(append(words, quiet...), quiet...)
	recorded := filepath.Join(t.TempDir(), "words.wav")
	if err := media.WriteWAV(recorded, media.WAV{Rate: 8000, PCM: [][]int16{words}}, media.PCM16); err != nil {
		t.Fatal(err)
	}
	phone := s.Phone(o.ada.SIP, rig.PhoneOptions{Say: recorded, Auto: true})
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.ada.Extension, "flow_id": f}, nil)
	phone.Wait("CALL_ESTABLISHED", "")

	rig.Until(t, "the telephone hears the answer", 30*time.Second, func() bool {
		n := time.Duration(phone.Mark()) * time.Second / 8000
		return n > time.Second && presence(phone.Since(0, n-200*time.Millisecond), answerTone) > 500*time.Millisecond
	})
	phone.Do("hangup", "")
	got, steps, timeline := o.passed(o.records(1, "")[0].CallID)
	if turns := agentSteps(t, timeline, "ai_agent.turn"); got != "agent:gone" || len(turns) != 1 {
		t.Errorf("way of the telephone: %s %+v; turns %v", got, steps, turns)
	}

	way := o.line(f)
	pressing := o.talker(way, "+12125550103")
	at := pressing.hears(0, greetTone)
	pressing.press("0")
	pressing.hears(at, bobTone)
	pressing.line.HangUp()

	silent := o.talker(way, "+12125550102")
	silent.hears(0, greetTone)
	silent.ends()
	if got, steps, timeline = o.passed(o.record("+12125550102").CallID); got != "agent:silence bye" {
		t.Errorf("way of who was silent: %s %+v %s", got, steps, timeline)
	}
}
