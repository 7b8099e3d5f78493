package voiceagent

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/protocol/media/wav"
)

// One caller sends recorded speech; others are silent, or press 0.
func TestVoiceAgent_PhoneSpeechSilenceAndZeroKey(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 75*time.Second, "several conversations, with silences that have to run out")
	e := fixture.NewAIServer(t)
	s := rig.Start(t, e.VoiceOptions())
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	f := o.AddFlow(fixture.Node("agent", "ai_agent", map[string]any{"instructions": faq, "handoff": "user:" + o.Bob.ID, "greeting": "How can I help?"}, "failed", "bye"),
		fixture.Node("bye", "hangup", nil))

	var words []int16 // the question every ten seconds: the agent may begin late on a busy machine
	question := append(make([]int16, 8*8000), trimmed(fixture.Synthesize(t, "rms", "What are your opening hours?"))...)
	for len(words) < 120*8000 {
		words = append(words, question...)
	}
	recorded := filepath.Join(t.TempDir(), "words.wav")
	if err := wav.Write(recorded, wav.Audio{Rate: 8000, PCM: [][]int16{words}}, wav.PCM16); err != nil {
		t.Fatal(err)
	}
	phone := s.Phone(o.Ada.SIP, rig.PhoneOptions{Say: recorded, Auto: true})
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.Ada.Extension, "flow_id": f}, nil)
	phone.Wait("CALL_ESTABLISHED", "")

	rig.Until(t, "the telephone hears the answer", 30*time.Second, func() bool {
		n := time.Duration(phone.Mark()) * time.Second / 8000
		return n > time.Second && fixture.ToneDuration(phone.Since(0, n-200*time.Millisecond), fixture.AnswerTone) > 500*time.Millisecond
	})
	asked := max(1, phone.Mark()/len(question))
	phone.Do("hangup", "")
	got, steps, timeline := o.FlowPath(o.CDRs(1, "")[0].CallID, "agent:gone")
	if turns := timelineDetails(t, timeline, "ai_agent.turn"); got != "agent:gone" || len(turns) == 0 || len(turns) > asked {
		t.Errorf("way of the telephone: %s %+v; %d questions, turns %v", got, steps, asked, turns)
	}

	way := o.AddFlowCarrier(f)
	pressing := callInSpeaking(o.Org, way, "+12125550103")
	at := pressing.WaitTone(0, fixture.AgentGreetingTone)
	pressing.Press("0")
	pressing.WaitTone(at, fixture.BobTone)
	pressing.Line.HangUp()

	silent := callInSpeaking(o.Org, way, "+12125550102")
	silent.WaitTone(0, fixture.AgentGreetingTone)
	silent.WaitEnd()
	if got, steps, timeline = o.FlowPath(o.CDR("+12125550102").CallID, "agent:silence bye"); got != "agent:silence bye" {
		t.Errorf("way of who was silent: %s %+v %s", got, steps, timeline)
	}
}

// faq holds the instructions of a scripted agent.
const faq = `You work for a dentist.
Q: What are your opening hours? | opening hours | when are you open
A: We are open from nine to five.
Q: Where can I park? | parking
A: There is free parking behind the house, for all of our patients, the whole day, every day of the week, and also in the evening.`

// threeQuestions is the result of askThreeQuestions.
type threeQuestions struct {
	at       int // mark of the handoff; -1 if the agent handed over before
	repeated [3]int
	spoke    time.Duration // of the interrupted answer
}

// askThreeQuestions asks the agent of faq for its hours and for parking, and interrupts the answer, which takes five seconds, to ask for a
// person.
func askThreeQuestions(v *speakingCaller) (x threeQuestions) {
	v.T.Helper()
	say := func(words string) []int16 { return trimmed(fixture.Synthesize(v.T, "rms", words)) }
	at := v.waitSilence(v.WaitTone(v.WaitTone(0, fixture.DisclosureTone), fixture.AgentGreetingTone))
	if x.at, x.repeated[0] = v.ask(at, say("What are your opening hours?"), fixture.AnswerTone); x.at < 0 {
		return x
	}
	if x.at, x.repeated[1] = v.ask(v.waitSilenceOrBob(x.at), say("Where can I park?"), fixture.SecondTone); x.at < 0 {
		return x
	}
	answered := x.at
	x.at, x.repeated[2] = v.ask(answered, say("I want to speak to a person please."), fixture.HandoffTone)
	x.spoke = fixture.ToneDuration(v.Since(answered, fixture.SampleDuration(x.at-answered)), fixture.SecondTone)
	return x
}

// A caller talks to the scripted agent. It identifies itself as an agent, answers, is interrupted, and hands over.
func TestScripted_AnswersAndHandsOver(t *testing.T) {
	t.Parallel()
	e := fixture.NewAIServer(t)
	rig.Each(t, e.VoiceOptions(), func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Bob = o.AddUser("Bob")
		o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
		way := addAgentCarrier(o, map[string]any{"instructions": faq, "handoff": "user:" + o.Bob.ID})

		from, v, x := "", (*speakingCaller)(nil), threeQuestions{at: -1}
		for i := 0; x.at < 0 && i < 3; i++ { // again if a busy machine garbled words repeatedly, so that the agent handed over
			from = fmt.Sprintf("+1212555010%d", 1+i)
			v = callInSpeaking(o.Org, way, from)
			if x = askThreeQuestions(v); x.at < 0 {
				v.Line.HangUp()
			}
		}
		if x.at < 0 {
			t.Fatal("the agent handed over before it was asked for a person, in three calls")
		}
		first, second, third := x.repeated[0], x.repeated[1], x.repeated[2]
		if third == 0 && x.spoke > 4*time.Second {
			t.Errorf("the agent spoke on for %s when it was interrupted", x.spoke)
		}
		at := x.at
		v.WaitTone(at, fixture.BobTone)
		v.Line.HangUp()

		r := o.CDR(from)
		got, steps, timeline := o.FlowPath(r.CallID, "agent:answered")
		if got != "agent:answered" || r.Agent == nil || r.Agent.ID != o.Bob.ID {
			t.Fatalf("way %s %+v; %s", got, steps, timeline)
		}
		turns := timelineDetails(t, timeline, "ai_agent.turn")
		n := len(turns)
		if n < 3 || n > 3+first+second+third || turns[0]["interrupted"] != false || third == 0 && turns[n-2]["interrupted"] != true {
			t.Fatalf("the caller repeated %d, %d and %d times; turns: %v", first, second, third, turns)
		}
		for _, x := range turns[:n-1] {
			for _, stage := range []string{"understood_ms", "endpoint_ms", "thought_ms", "voiced_ms", "audio_ms"} {
				if _, ok := x[stage].(float64); !ok {
					t.Errorf("a turn without %s: %v", stage, x)
				}
			}
		}
		var notes struct{ Data []struct{ Body string } }
		o.Want(200, "GET", "/calls/"+r.CallID+"/notes", nil, &notes)
		if len(notes.Data) != 1 || !strings.Contains(notes.Data[0].Body, "person") || !strings.Contains(notes.Data[0].Body, "nine to five") ||
			third == 0 && strings.Contains(notes.Data[0].Body, "evening") || !strings.Contains(notes.Data[0].Body, "There is") {
			t.Errorf("what Bob is told: %+v", notes.Data)
		}
		if strings.Contains(s.Log(), "level=ERROR") {
			t.Error("errors in the log")
		}
	})
}
