package voiceagent

import (
	"math"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/protocol/media"
)

// echoingCaller is a caller with a loudspeaker: the microphone picks up what the agent said a moment ago, besides the caller's words.
type echoingCaller struct {
	*speakingCaller
	feed    *media.InjectedAudio
	gain    float64 // of the echo
	waiting []int16 // words that are still to be said
}

// echoDelay is the time until the microphone picks up what the loudspeaker plays.
const echoDelay = 200 * time.Millisecond

// callInEchoing calls the number of a carrier from outside. The echo has this level in dB, compared with what the caller hears.
func callInEchoing(s *fixture.Org, way fixture.Carrier, from string, level float64) *echoingCaller {
	s.T.Helper()
	line, err := s.DialIn(way, from)
	if err != nil {
		s.T.Fatal(err)
	}
	quiet := &speakingCaller{Caller: &fixture.Caller{T: s.T, Line: line}, words: make(chan []int16, 1), spoke: make(chan time.Time, 1)}
	x := &echoingCaller{speakingCaller: quiet, feed: line.Feed(), gain: math.Pow(10, level/20)}
	x.feed.Write(make([]int16, 8000*echoDelay/time.Second))
	line.Listen(x.hear)
	return x
}

// hear keeps audio, and sends its echo with the caller's words.
func (x *echoingCaller) hear(pcm []int16) {
	x.Keep(pcm)
	select {
	case x.waiting = <-x.words:
	default:
	}
	sent := make([]int16, len(pcm))
	for i, v := range pcm {
		sent[i] = int16(float64(v) * x.gain)
	}
	n := min(len(x.waiting), len(sent))
	for i, v := range x.waiting[:n] {
		sent[i] = int16(max(math.MinInt16, min(math.MaxInt16, int(sent[i])+int(v))))
	}
	x.feed.Write(sent)
	if x.waiting = x.waiting[n:]; n > 0 && len(x.waiting) == 0 {
		x.spoke <- time.Now()
	}
}

// A caller with a loudspeaker sends the agent's voice back. The agent speaks to its end, and its own words are no turn of the caller. The
// voice and the recogniser are the built-in ones.
//
// https://github.com/pipecat-ai/pipecat/issues/1771
// https://github.com/innate-inc/innate-os/pull/610
func TestVoiceAgent_CallerWithLoudspeaker(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "a greeting and long answers are spoken")
	s := rig.Start(t, rig.Options{DB: rig.OwnDB(t), Load: rig.Speech})
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	way := addAgentCarrier(o, map[string]any{"instructions": faq, "greeting": "How can I help?"})
	v := callInEchoing(o.Org, way, "+12125550101", -12)
	question := trimmed(fixture.Synthesize(t, "rms", "Where can I park?"))
	mark := v.waitSilence(v.waitVoice(0))
	asked, whole := 0, false
	for ; asked < 4 && !whole; asked++ { // a busy machine may garble the question
		v.say(question)
		end := v.waitSilence(v.waitVoice(mark))
		whole = isWholeAnswer(t, v.Since(mark, fixture.SampleDuration(end-mark)))
		mark = end
	}
	if !whole {
		t.Error("the caller never heard the whole answer")
	}
	quiet := v.Since(mark, 3*time.Second)
	if p := peak(quiet); p > 1000 {
		t.Errorf("the agent spoke on after its answer, as loud as %d", p)
	}
	v.Line.HangUp()
	path, _, timeline := o.FlowPath(o.CDR("+12125550101").CallID, "agent:gone")
	turns := timelineDetails(t, timeline, "ai_agent.turn")
	if path != "agent:gone" || len(turns) == 0 || len(turns) > asked {
		t.Errorf("way %s; the caller asked %d times, turns %v", path, asked, turns)
	}
	for _, turn := range turns {
		if turn["interrupted"] != false {
			t.Errorf("the agent interrupted itself: %v", turn)
		}
	}
}

// isWholeAnswer reports whether audio has the beginning and the end of the long answer. Words sound different within a sentence.
func isWholeAnswer(t *testing.T, pcm []int16) bool {
	t.Helper()
	first, at := fixture.Similarity(pcm, trimmed(fixture.Synthesize(t, "slt", "There is free parking behind the house,")))
	last, end := fixture.Similarity(pcm, trimmed(fixture.Synthesize(t, "slt", "and also in the evening.")))
	t.Logf("the beginning is heard at %s, as like as %.2f; the end at %s, %.2f", at, first, end, last)
	return first > 0.65 && last > 0.45 && end-at > 5*time.Second
}

// waitVoice waits until something is heard after a mark, and returns a mark.
func (x *echoingCaller) waitVoice(mark int) int {
	x.T.Helper()
	rig.Until(x.T, "the agent speaks", 30*time.Second, func() bool {
		n := x.Mark()
		return n > mark && peak(x.Since(mark, fixture.SampleDuration(n-mark))) > 2000
	})
	return x.Mark()
}
