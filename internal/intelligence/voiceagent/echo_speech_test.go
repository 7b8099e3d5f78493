package voiceagent

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/wav"
)

// recorded returns a sentence of a human voice, at 8 kHz.
func recorded(t *testing.T, name string) []int16 {
	t.Helper()
	f, err := wav.Read("../../sandbox/softphone/lines/" + name + ".wav")
	if err != nil {
		t.Fatal(err)
	}
	return f.PCM[0]
}

// recordedVoice speaks texts by recordings.
type recordedVoice map[string][]int16

func (recordedVoice) Ready(context.Context) error { return nil }

func (v recordedVoice) Synthesize(_ context.Context, _, text, _, _ string, _ bool) (*clip.Clip, error) {
	return clip.New(v[text], 8000), nil
}

// networkAnswer lasts five seconds.
const networkAnswer = "there is a problem with the network in your area and I will send a technician tomorrow morning"

// echoingLine is a testLine over G.711 that knows when its user spoke.
type echoingLine struct {
	testLine
	damage lineDamage

	// The line's mutex guards the fields below.
	spoke []bool // the user spoke in this frame
	noise int    // utterances without words of the user
}

// lineDamage is what a network and a busy machine do to the audio.
type lineDamage struct {
	burst int                  // frames that arrive together; 0: each for itself
	lost  func(frame int) bool // frames of the agent that the telephone does not get; nil: none
}

// Listen implements Caller.
func (l *echoingLine) Listen(ctx context.Context) (<-chan []int16, func(), error) {
	pcm := make(chan []int16, 64)
	ctx, stop := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(frameDuration)
		defer tick.Stop()
		var late []int16
		for ctx.Err() == nil {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if late = append(late, l.telephone()...); len(late) < l.damage.burst*frameSamples {
				continue
			}
			select {
			case pcm <- late:
			case <-ctx.Done():
			}
			late = nil
		}
	}()
	return pcm, stop, nil
}

// telephone returns the next 20 ms of the telephone.
func (l *echoingLine) telephone() []int16 {
	l.mu.Lock()
	l.spoke = append(l.spoke, len(l.says) > 0)
	l.mu.Unlock()
	out := l.frame()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.damage.lost != nil && l.damage.lost(len(l.spoke)) {
		clear(l.played[len(l.played)-frameSamples:])
	}
	return codec.DecodeULaw(nil, codec.EncodeULaw(nil, out))
}

// hears is the recogniser: it returns the user's words, and for anything else words that the agent never says.
func (l *echoingLine) hears(pcm []int16) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.spoke[max(len(l.spoke)-len(pcm)/frameSamples, 0):], true) {
		return "no that is wrong"
	}
	l.noise++
	return "this is only noise"
}

// isSilent reports whether neither the agent nor the caller speaks.
func (l *echoingLine) isSilent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.playing == nil && len(l.says) == 0
}

// turns returns how many turns are over.
func (l *echoingLine) turns() (n int) {
	_, entries, _ := l.state()
	for _, e := range entries {
		if e == "ai_agent.turn" {
			n++
		}
	}
	return n
}

// wantUndisturbed fails if the agent was stopped, or took its own speech for words.
func (l *echoingLine) wantUndisturbed(t *testing.T, of string) {
	t.Helper()
	stopped, entries, _ := l.state()
	l.mu.Lock()
	defer l.mu.Unlock()
	if stopped > 0 || l.noise > 0 {
		t.Fatalf("the echo of %s was taken for speech %d times, and stopped the agent %d times: %v", of, l.noise, stopped, entries)
	}
}

// A telephone sends the agent's speech back. The agent speaks to its end, and the speech is no turn. Three answers in a row that the
// caller cuts off lead to a person. Frames that come late change nothing. The time of the test is that of the audio.
//
// https://github.com/pipecat-ai/pipecat/issues/1771
func TestConverse_EchoOfSpeech(t *testing.T) {
	t.Parallel()
	each := func(n, of int) func(int) bool { return func(frame int) bool { return frame%of < n } }
	for name, damage := range map[string]lineDamage{"whole": {}, "frames lost": {lost: each(1, 20)}, "gaps": {lost: each(3, 50)},
		"bursts of 100 ms": {burst: 5}, "bursts of 200 ms": {burst: 10}, "bursts and gaps": {burst: 6, lost: each(3, 50)}} {
		for _, level := range []float64{-12, -18, -24} {
			t.Run(fmt.Sprint(name, ", ", level, " dB"), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					talkWithEcho(t, &echoingLine{damage: damage,
						testLine: testLine{echo: math.Pow(10, level/20), delay: 200 * time.Millisecond}})
				})
			})
		}
	}
}

func talkWithEcho(t *testing.T, line *echoingLine) {
	t.Helper()
	m := &testModel{reply: func(_ context.Context, _ int, say func(string)) ([]ToolCall, error) {
		say(networkAnswer)
		return nil, nil
	}}
	voice := recordedVoice{phraseIn("en", disclosure): recorded(t, "7-agent"), "Hello you.": recorded(t, "1-agent"),
		networkAnswer: recorded(t, "5-agent"), phraseIn("en", connecting): recorded(t, "3-agent")}
	result, end := converse(t, line, m, line.hears, func(s *Service) { s.cfg.Synthesizer = voice })
	defer end()
	words := recorded(t, "2-caller")[:2*8000]
	await(t, "the greeting", func() bool { return line.time() > 6*8000 && line.isSilent() })
	time.Sleep(time.Second)
	line.wantUndisturbed(t, "the greeting")
	line.say(words)
	await(t, "the answer", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.heard) > 0 && !line.isSilent() })
	await(t, "the end of the answer", line.isSilent)
	time.Sleep(time.Second)
	line.wantUndisturbed(t, "the answer")
	var r Result
	for said := 0; r.Outcome == "" && said < 8; said++ {
		had := line.turns()
		line.say(words)
		await(t, "an answer or the end", func() bool {
			select {
			case r = <-result:
				return true
			default:
				return line.turns() > had && !line.isSilent()
			}
		})
		time.Sleep(700 * time.Millisecond)
	}
	if r.Outcome != Handoff || !strings.Contains(r.Reason, "cut off") {
		t.Errorf("no person: %+v", r)
	}
	if n := strings.Count(r.Transcript, "Caller:"); n != 5 { // the first answer is not cut off, the next three are
		t.Errorf("%d turns of the caller: %s", n, r.Transcript)
	}
}
