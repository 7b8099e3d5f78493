package voiceagent

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/sandbox/softphone"
)

// echoingLine is a telephone line that sends back what it receives, weaker and later, together with the caller's voice.
type echoingLine struct {
	*fixture.Caller
	gain float64
	say  chan []int16

	mu   sync.Mutex // guards late
	late []int16    // received audio that is not sent back yet
}

// callInEchoing calls the number of a carrier over a line with an echo of a level in dB and a delay.
func callInEchoing(s *fixture.Org, way fixture.Carrier, from string, level float64, delay time.Duration) *echoingLine {
	s.T.Helper()
	line, err := s.DialIn(way, from)
	if err != nil {
		s.T.Fatal(err)
	}
	x := &echoingLine{Caller: &fixture.Caller{T: s.T, Line: line}, gain: math.Pow(10, level/20), say: make(chan []int16, 1),
		late: make([]int16, delay*8/time.Millisecond)}
	line.Listen(func(pcm []int16) {
		x.Keep(pcm)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.late = append(x.late, pcm...)
	})
	ctx, hush := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); x.send(ctx, line) }()
	s.T.Cleanup(func() { hush(); <-over })
	return x
}

// send sends the echo and the caller's voice until the line or the context ends.
func (x *echoingLine) send(ctx context.Context, line *softphone.ActiveCall) {
	var voice []int16
	for frame := make([]int16, 160); ; {
		select {
		case pcm := <-x.say:
			voice = append(voice, pcm...)
		default:
		}
		x.mu.Lock()
		echo := copy(frame, x.late)
		x.late = x.late[echo:]
		x.mu.Unlock()
		clear(frame[echo:])
		for i, v := range frame {
			sum := float64(v) * x.gain
			if i < len(voice) {
				sum += float64(voice[i])
			}
			frame[i] = int16(max(math.MinInt16, min(math.MaxInt16, sum)))
		}
		voice = voice[min(len(frame), len(voice)):]
		if line.Say(ctx, frame) != nil {
			return
		}
	}
}

// ask speaks until the agent has answered for a second, or Bob is there; again if a busy machine tore the words.
func (x *echoingLine) ask(pcm []int16) {
	x.T.Helper()
	for range 5 {
		at := x.Mark()
		x.say <- pcm
		for heard := fixture.SampleDuration(len(pcm)); heard < 15*time.Second; heard += 200 * time.Millisecond {
			if isAnswer(x.Since(at, heard)) {
				return
			}
		}
	}
	x.T.Fatal("the agent did not answer five times")
}

// isAnswer reports whether audio has Bob's tone, or a second of speech after 0.6 s of silence.
func isAnswer(pcm []int16) bool {
	if fixture.ToneDuration(pcm, fixture.BobTone) >= 300*time.Millisecond {
		return true
	}
	const part = 800 // 100 ms
	quiet, loud := 0, 0
	for ; len(pcm) >= part && loud < 10; pcm = pcm[part:] {
		switch isLoud := peak(pcm[:part]) > 1000; {
		case quiet >= 6 && isLoud:
			loud++
		case quiet < 6 && isLoud:
			quiet = 0
		case quiet < 6:
			quiet++
		}
	}
	return loud == 10
}

// spoken returns for how long speech was heard after a mark.
func (x *echoingLine) spoken(mark int) (d time.Duration) {
	pcm := x.Since(mark, fixture.SampleDuration(x.Mark()-mark))
	for ; len(pcm) >= 800; pcm = pcm[800:] {
		if peak(pcm[:800]) > 1000 {
			d += 100 * time.Millisecond
		}
	}
	return d
}

// waitSilence waits until the agent has been silent for a time, and returns a mark.
func (x *echoingLine) waitSilence(d time.Duration) int {
	x.T.Helper()
	quiet := int(d.Seconds() * 8000)
	rig.Until(x.T, "the end of the agent's speech", 60*time.Second, func() bool {
		n := x.Mark()
		return n >= quiet && peak(x.Since(n-quiet, d)) < 500
	})
	return x.Mark()
}

// echoAnswer is an answer of the agent, long enough to be cut off.
const echoAnswer = "Sorry, I can help with that today, because every counter stays open until seven, and nobody waits longer than five minutes there."

// objection is what the caller says.
const objection = "No, that is wrong."

// newEchoServer starts the engines of an agent with a human voice, and a server that uses them. The recogniser takes the
// caller's tone for words, and any other sound for words that the agent says at that time.
func newEchoServer(t *testing.T) (*fixture.AIServer, *rig.Server) {
	t.Helper()
	e := fixture.NewAIServer(t)
	var flite sync.Mutex
	dir := t.TempDir()
	e.Speak = func(text string) ([]int16, error) {
		flite.Lock()
		defer flite.Unlock()
		return fixture.SynthesizeIn(dir, "slt", text)
	}
	e.Recognise = func(pcm []int16) string {
		switch {
		case fixture.ToneDuration(pcm, bobsTone) >= 500*time.Millisecond: // of 800 ms: once for each
			return objection
		case peak(pcm) > 300:
			return "Sorry, I can help with that."
		}
		return ""
	}
	e.Reply = func(int, map[string]any) ([]string, map[string]any) { return []string{echoAnswer}, nil }
	return e, rig.Start(t, e.LanguageModelOptions(nil))
}

// On a line that sends the agent's own voice back, the agent talks to its end, and its words are no turn of the caller.
// The caller is heard all the same. Three answers in a row that the caller cuts off lead to a person.
//
// https://github.com/pipecat-ai/pipecat/issues/1771
func TestEcho_AgentNotStoppedByOwnVoice(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "the disclosure, a greeting and an answer are heard to their end, and three answers are begun")
	whole := fixture.SampleDuration(len(fixture.Synthesize(t, "slt", echoAnswer)))
	e, s := newEchoServer(t)
	for i, level := range []float64{-12, -24} {
		t.Run(fmt.Sprint(level, " dB"), func(t *testing.T) {
			t.Parallel()
			o := &fixture.Office{Org: fixture.NewOrg(s).In(t)}
			o.Bob = o.AddUser("Bob")
			o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
			way := addAgentCarrier(o, map[string]any{"instructions": "Help.", "greeting": "Sorry, I can help with that in a moment.", "handoff": "user:" + o.Bob.ID})
			from := fmt.Sprint("+1212555010", i)
			v := callInEchoing(o.Org, way, from, level, 200*time.Millisecond)
			rig.Until(t, "the greeting", 60*time.Second, func() bool { return v.spoken(0) >= 3*time.Second })
			at := v.waitSilence(1500 * time.Millisecond)
			words := callerTone(bobsTone, 800*time.Millisecond)
			v.ask(words)
			v.waitSilence(1500 * time.Millisecond)
			if got := v.spoken(at); got < whole*7/10 {
				t.Errorf("the agent spoke for %s of an answer of %s", got, whole)
			}
			asked := 1
			for at = v.Mark(); fixture.ToneDuration(v.Since(at, fixture.SampleDuration(v.Mark()-at)), fixture.BobTone) == 0; asked++ {
				if asked == 9 {
					t.Fatal("no person after eight interruptions")
				}
				v.ask(words)
			}
			v.Line.HangUp()

			got, steps, timeline := o.FlowPath(o.CDR(from).CallID, "agent:answered")
			turns := timelineDetails(t, timeline, "ai_agent.turn")
			if got != "agent:answered" || !strings.Contains(timeline, "cut off") {
				t.Errorf("way %s %+v; turns %v", got, steps, turns)
			}
			if len(turns) > 0 && turns[0]["interrupted"] != false {
				t.Errorf("the first answer was interrupted: %v", turns)
			}
		})
	}
	t.Cleanup(func() { wantOnlyObjections(t, e) })
}

// wantOnlyObjections fails if the language model was told words of the agent as words of the caller.
func wantOnlyObjections(t *testing.T, e *fixture.AIServer) {
	t.Helper()
	if len(e.Requests) == 0 {
		t.Error("the language model was asked nothing")
	}
	for _, r := range e.Requests {
		for _, m := range r["messages"].([]any) {
			if m := m.(map[string]any); m["role"] == "user" && !strings.Contains(fmt.Sprint(m["content"]), objection) {
				t.Errorf("a turn of the caller: %v", m["content"])
			}
		}
	}
}
