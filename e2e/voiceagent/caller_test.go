package voiceagent

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// speakingCaller is an outside caller. It sends silence until say is called.
type speakingCaller struct {
	*fixture.Caller
	words chan []int16
	spoke chan time.Time

	mu   sync.Mutex  // guards loud
	loud []time.Time // arrival time of each packet with sound
}

// callInSpeaking calls the number of a carrier from outside.
func callInSpeaking(s *fixture.Org, way fixture.Carrier, from string) *speakingCaller {
	s.T.Helper()
	line, err := s.DialIn(way, from)
	if err != nil {
		s.T.Fatal(err)
	}
	x := &speakingCaller{Caller: &fixture.Caller{T: s.T, Line: line}, words: make(chan []int16, 1), spoke: make(chan time.Time, 1)}
	line.Listen(func(pcm []int16) {
		x.Keep(pcm)
		x.mu.Lock()
		defer x.mu.Unlock()
		if peak(pcm) > 1000 {
			x.loud = append(x.loud, time.Now())
		}
	})
	ctx, hush := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for quiet := make([]int16, 160); ; {
			select {
			case pcm := <-x.words:
				if line.Say(ctx, pcm) != nil {
					return
				}
				x.spoke <- time.Now()
			default:
				if line.Say(ctx, quiet) != nil {
					return
				}
			}
		}
	}()
	s.T.Cleanup(func() { hush(); <-over })
	return x
}

// say speaks, and returns the time of its end.
func (x *speakingCaller) say(pcm []int16) (ended time.Time) {
	x.T.Helper()
	x.words <- pcm
	select {
	case ended = <-x.spoke:
	case <-time.After(limit.Hang(0)):
		x.T.Fatal("it could not be said")
	}
	return ended
}

// ask speaks, and waits until a tone answers. If the agent asks the caller to repeat, because a busy machine garbled the
// words, it says them again. It returns a mark and how often it did. The mark is -1 if the agent handed over instead, because the words
// were garbled repeatedly.
func (x *speakingCaller) ask(mark int, pcm []int16, answer float64) (at, again int) {
	x.T.Helper()
	for mark >= 0 {
		x.say(pcm)
		at, heard := x.WaitAnyTone(mark, answer, fixture.OtherSpeechTone, fixture.HandoffTone)
		switch heard {
		case answer:
			return at, again
		case fixture.HandoffTone:
			return -1, again
		}
		if again++; again > 3 {
			x.T.Fatal("the agent did not understand it four times")
		}
		mark = x.waitSilenceOrBob(at)
	}
	return -1, again
}

// quiet is the number of samples without sound after which the agent has finished: 0.8 s.
const quiet = 6400

// waitSilence waits until nothing was heard for 0.8 s, and returns a mark.
func (x *speakingCaller) waitSilence(mark int) int {
	x.T.Helper()
	rig.Until(x.T, "the agent has finished", 30*time.Second, func() bool {
		n := x.Mark()
		return n >= mark+quiet && peak(x.Since(n-quiet, quiet*time.Second/8000)) < 500
	})
	return x.Mark()
}

// waitSilenceOrBob waits as waitSilence does. It returns -1 if the agent has handed the call over to Bob, whose phone plays a tone.
func (x *speakingCaller) waitSilenceOrBob(mark int) int {
	x.T.Helper()
	bob := false
	rig.Until(x.T, "the agent has finished", 30*time.Second, func() bool {
		n := x.Mark()
		if n < mark+quiet {
			return false
		}
		last := x.Since(n-quiet, quiet*time.Second/8000)
		bob = fixture.ToneDuration(last, fixture.BobTone) >= 700*time.Millisecond
		return bob || peak(last) < 500
	})
	if bob {
		return -1
	}
	return x.Mark()
}

// peak returns the largest amplitude.
func peak(pcm []int16) (most int16) {
	for _, v := range pcm {
		most = max(most, v, -v)
	}
	return most
}

// trimmed returns speech without silence at its ends.
func trimmed(pcm []int16) []int16 {
	loud := func(v int16) bool { return v > 500 || v < -500 }
	for len(pcm) > 0 && !loud(pcm[0]) {
		pcm = pcm[1:]
	}
	for len(pcm) > 0 && !loud(pcm[len(pcm)-1]) {
		pcm = pcm[:len(pcm)-1]
	}
	return pcm
}

// timelineDetails returns the details of the steps of one kind.
func timelineDetails(t testing.TB, timeline, kind string) (all []map[string]any) {
	t.Helper()
	var page struct {
		Data []struct {
			Kind   string
			Detail map[string]any
		}
	}
	if err := json.Unmarshal([]byte(timeline), &page); err != nil {
		t.Fatalf("timeline: %v", err)
	}
	for _, s := range page.Data {
		if s.Kind == kind {
			all = append(all, s.Detail)
		}
	}
	return all
}

// addAgentCarrier adds a carrier with a number that is routed to a voice agent.
func addAgentCarrier(o *fixture.Office, config map[string]any) fixture.Carrier {
	return o.AddFlowCarrier(o.AddFlow(fixture.Node("agent", "ai_agent", config, "failed", "bye"), fixture.Node("bye", "hangup", nil)))
}
