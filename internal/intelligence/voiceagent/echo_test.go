package voiceagent

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// longAnswer lasts about six seconds.
const longAnswer = "Sorry, I can help with that today because every counter stays open until seven and nobody waits longer than five minutes there."

func isLoud(pcm []int16, at float64) bool { return decibels(pcm) > at }

// The agent's own audio that comes back from the line is no turn, and does not stop the agent. The caller who says
// something else is heard at once.
//
// https://github.com/pipecat-ai/pipecat/issues/1771
func TestConverse_OwnEcho(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		level float64
		delay time.Duration
	}{"-12 dB": {-12, 200 * time.Millisecond}, "-24 dB": {-24, 200 * time.Millisecond}, "late": {-12, 700 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := &testLine{echo: math.Pow(10, c.level/20), delay: c.delay}
			m := &testModel{reply: func(_ context.Context, _ int, say func(string)) ([]ToolCall, error) {
				say(longAnswer)
				return nil, nil
			}}
			caller := spoken("where is my blue bag now", 20000)
			converse(t, line, m, func(pcm []int16) string {
				if isLoud(pcm[max(len(pcm)-8000, 0):], 60) {
					return "where is my blue bag now"
				}
				return "sorry I can help"
			}, nil)
			turns := func() int { m.mu.Lock(); defer m.mu.Unlock(); return len(m.heard) }
			await(t, "the greeting", func() bool {
				line.mu.Lock()
				defer line.mu.Unlock()
				return len(line.played) > 8000*5 && line.playing == nil
			})
			if stopped, entries, _ := line.state(); stopped > 0 || turns() > 0 {
				t.Fatalf("the echo of the greeting stopped the agent %d times: %v %v", stopped, entries, m.heard)
			}
			line.say(caller)
			await(t, "the answer", func() bool { return turns() > 0 })
			began := line.time()
			await(t, "four seconds of the answer", func() bool { return line.time() > began+8000*5 })
			if stopped, entries, _ := line.state(); stopped > 0 || turns() != 1 {
				t.Errorf("its echo stopped the agent %d times: %v %v", stopped, entries, m.heard)
			}
			line.say(caller) // barges in
			at := line.time()
			await(t, "barge-in", func() bool { stopped, _, _ := line.state(); return stopped > 0 })
			if took := line.time() - at; took > 8000*9/10 {
				t.Errorf("barge-in took %d samples", took)
			}
		})
	}
}

// Words are the agent's own if it said them at that time, although the audio was changed on the way.
func TestAreOwnWords(t *testing.T) {
	t.Parallel()
	said := wordsOf("Sorry, I can help with that today")
	for text, want := range map[string]bool{"sorry I can": true, "I can help with fat": true, "help with that today": true, "no wait": false,
		"can you help my mother with this please": false, "": false, "that today": true} {
		if got := areOwnWords(wordsOf(text), said); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if areOwnWords(wordsOf("hello"), nil) {
		t.Error("a silent agent has said something")
	}
}

// An echo that is distorted so much that only its words are the same is no turn either.
func TestConverse_DistortedEcho(t *testing.T) {
	t.Parallel()
	line := &testLine{}
	m := &testModel{reply: func(_ context.Context, _ int, say func(string)) ([]ToolCall, error) { say(longAnswer); return nil, nil }}
	said := "hello where are you"
	heard := make(chan string, 100)
	converse(t, line, m, func([]int16) string { heard <- said; return said }, nil)
	await(t, "the greeting", func() bool {
		line.mu.Lock()
		defer line.mu.Unlock()
		return len(line.played) > 8000*3 && line.playing == nil
	})
	line.say(spoken("hello where are you", 20000))
	await(t, "the answer", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		line.mu.Lock()
		defer line.mu.Unlock()
		return len(m.heard) == 1 && line.playing != nil
	})
	said = "sorry I"
	for len(heard) > 0 {
		<-heard
	}
	line.say(spoken("zzzz yyyyyy xxx wwwww", 3000))
	<-heard
	await(t, "the end of the answer", func() bool {
		line.mu.Lock()
		defer line.mu.Unlock()
		return line.playing == nil && time.Since(line.loudAt) > time.Second
	})
	if m.mu.Lock(); len(m.heard) != 1 {
		t.Errorf("turns: %q", m.heard)
	}
	m.mu.Unlock()
}

// Three answers in a row that are cut off lead to a person.
func TestConverse_ThreeCutOffsHandOver(t *testing.T) {
	t.Parallel()
	line := &testLine{}
	m := &testModel{reply: func(_ context.Context, _ int, say func(string)) ([]ToolCall, error) { say(longAnswer); return nil, nil }}
	result, _ := converse(t, line, m, func([]int16) string { return "no that is wrong" }, nil)
	speaks := func() bool { line.mu.Lock(); defer line.mu.Unlock(); return line.playing != nil }
	await(t, "the greeting", func() bool {
		line.mu.Lock()
		defer line.mu.Unlock()
		return len(line.played) > 8000*3 && line.playing == nil
	})
	var r Result
	for turn := 0; r.Outcome == ""; turn++ {
		if turn == 5 {
			t.Fatal("no person")
		}
		line.say(spoken("no that is wrong", 20000))
		await(t, "an answer or the end", func() bool {
			select {
			case r = <-result:
				return true
			default:
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.heard) > turn && speaks()
		})
	}
	if r.Outcome != Handoff || !strings.Contains(r.Reason, "cut off") {
		t.Errorf("result %+v", r)
	}
	if _, entries, _ := line.state(); !slices.ContainsFunc(entries, func(e string) bool { return strings.Contains(e, "cut off") }) {
		t.Errorf("timeline %v", entries)
	}
}
