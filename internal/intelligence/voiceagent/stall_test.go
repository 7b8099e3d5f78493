package voiceagent

import (
	"context"
	"strings"
	"testing"
	"time"
)

// shortStall replaces stallTimeout in these tests.
const shortStall = 1500 * time.Millisecond

// A model, a tool or a voice that begins and then stalls ends the conversation as one that never began. The caller hears nothing for no
// longer than the limit.
//
// https://github.com/pipecat-ai/pipecat/issues/5804
func TestConverse_StalledEngine(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, reply := range map[string]func(ctx context.Context, turn int, say func(string)) ([]ToolCall, error){
		"never began": func(ctx context.Context, _ int, _ func(string)) ([]ToolCall, error) { return nil, hang(ctx) },
		"first word": func(ctx context.Context, _ int, say func(string)) ([]ToolCall, error) {
			say("Let ")
			return nil, hang(ctx)
		},
		"first sentence": func(ctx context.Context, _ int, say func(string)) ([]ToolCall, error) {
			say("Let me look. And ")
			return nil, hang(ctx)
		},
		"nothing to say": func(ctx context.Context, _ int, say func(string)) ([]ToolCall, error) {
			for ctx.Err() == nil {
				say(" * ")
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
			return nil, ctx.Err()
		},
		"voice": func(_ context.Context, _ int, say func(string)) ([]ToolCall, error) {
			say("Yes. It will hang now.")
			return nil, nil
		},
		"tools": func(ctx context.Context, _ int, _ func(string)) ([]ToolCall, error) {
			select {
			case <-time.After(shortStall / 2):
			case <-ctx.Done():
			}
			return []ToolCall{{Name: "no_such_tool"}}, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := &testLine{}
			m := &testModel{reply: reply}
			result, _ := converse(t, line, m, func([]int16) string {
				return "when are you open"
			}, func(s *Service) { s.stall = shortStall })
			await(t, "the greeting", func() bool {
				line.mu.Lock()
				defer line.mu.Unlock()
				return len(line.played) > 8000*3 && line.playing == nil
			})
			line.say(spoken("when are you open", 20000))
			await(t, "the model", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.heard) > 0 })
			line.mu.Lock()
			line.gap, line.loudAt = 0, time.Now()
			line.mu.Unlock()
			var r Result
			select {
			case r = <-result:
			case <-time.After(12 * time.Second):
				t.Fatal("the caller waits still")
			}
			if r.Outcome != Failed || !strings.Contains(r.Reason, "no answer in time") && !strings.Contains(r.Reason, "voice") {
				t.Errorf("result %+v", r)
			}
			if _, entries, gap := line.state(); gap > shortStall+1200*time.Millisecond {
				t.Errorf("silence of %v: %v", gap, entries)
			}
		})
	}
}
