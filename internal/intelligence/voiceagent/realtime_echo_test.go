package voiceagent

import (
	"testing"
	"time"
)

// gateLine plays an item of an engine to a caller whose line returns it, frame by frame.
type gateLine struct {
	gate     echoGate
	activity *voiceActivity
	item     *outputItem
	at       int     // samples of the item that were played
	heard    []int16 // by the engine
	played   []int16 // everything that was played
	level    float64 // of the echo
	delay    int     // samples
}

// run lets the line carry what the caller says, and silence for the rest of the time. It returns how loud the engine
// found it, in frames.
func (g *gateLine) run(says []int16, lasts time.Duration) (loud int) {
	detector := newVoiceActivity()
	for n := 0; n < samplesOf(lasts); n += frameSamples {
		frame := make([]int16, frameSamples)
		for i := range frame {
			v := 0
			if g.item != nil && g.at < len(g.item.pcm) {
				v = int(g.item.pcm[g.at])
				g.at++
			}
			g.played = append(g.played, int16(v))
			sum := 0.0
			if back := len(g.played) - 1 - g.delay; back >= 0 {
				sum = float64(g.played[back]) * g.level
			}
			if len(says) > 0 {
				sum += float64(says[0])
				says = says[1:]
			}
			frame[i] = int16(sum)
		}
		item := g.item
		if item != nil && g.at == len(item.pcm) {
			item = nil // played to its end
		}
		position := g.at
		if n/frameSamples%3 == 1 {
			position -= frameSamples // known late
		}
		g.gate.played.advance(item, position, len(frame))
		out := g.gate.pass(frame, g.activity.frame(frame), g.activity.loudFrames())
		for i := 0; i+frameSamples <= len(out); i += frameSamples {
			if detector.frame(out[i : i+frameSamples]) {
				loud++
			}
		}
		g.heard = append(g.heard, out...)
	}
	return loud
}

// A realtime engine does not receive the echo of its own speech. It receives the caller's words during the echo, from their beginning,
// and the words after it.
//
// https://github.com/pipecat-ai/pipecat/issues/1771
func TestEchoGate_OwnEchoKeptFromTheEngine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		level float64
		delay time.Duration
	}{"-12 dB": {0.25, 200 * time.Millisecond}, "-24 dB": {0.063, 200 * time.Millisecond}, "late": {0.25, 700 * time.Millisecond}, "none": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := &gateLine{activity: newVoiceActivity(), level: c.level, delay: samplesOf(c.delay)}
			says := spoken("where is my blue bag now", 20000)
			if loud := line.run(says, 4*time.Second); loud < 50 {
				t.Errorf("before the agent says anything, the engine hears %d frames", loud)
			}
			line.item, line.at = &outputItem{}, 0
			line.item.addAudio(spoken(longAnswer, 20000), 8000)
			if loud := line.run(nil, 5*time.Second); loud > 0 {
				t.Errorf("the engine hears %d frames of its own echo", loud)
			}
			if loud := line.run(says, time.Duration(len(says))*time.Second/8000); loud < 50 {
				t.Errorf("the engine hears %d frames of a caller who barges in", loud)
			}
			line.item = nil // the engine stops
			line.run(nil, 3*time.Second)
			line.item, line.at = &outputItem{}, 0
			line.item.addAudio(spoken("hello where are you", 20000), 8000)
			if loud := line.run(nil, time.Duration(len(line.item.pcm))*time.Second/8000+500*time.Millisecond); loud > 0 {
				t.Errorf("the engine hears %d frames of its second echo", loud)
			}
			if loud := line.run(spoken("no", 20000), time.Second); c.delay < 500*time.Millisecond && loud < 5 {
				t.Errorf("the engine hears %d frames of a short answer", loud)
			}
		})
	}
}

// Audio of another rate is compared at 8 kHz, however it is divided.
func TestOutputItem_AudioAt8kHz(t *testing.T) {
	t.Parallel()
	x := &outputItem{}
	x.addAudio([]int16{3, 6, 9, 30}, 24000)
	x.addAudio([]int16{30, 30, 5}, 24000)
	if len(x.pcm) != 2 || x.pcm[0] != 6 || x.pcm[1] != 30 || len(x.rest) != 1 {
		t.Errorf("kept %v and %v", x.pcm, x.rest)
	}
}
