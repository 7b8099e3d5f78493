package voiceagent

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// brokenTranscriber is a Transcriber that fails.
type brokenTranscriber struct{ transcriberFunc }

func (brokenTranscriber) Transcribe(context.Context, []int16, []string, string) (string, error) {
	return "", errors.New("the engine has crashed")
}

// The result of a conversation that ends because the recogniser fails says why it failed.
func TestConversation_RecognitionErrorIsTheReason(t *testing.T) {
	t.Parallel()
	line := &testLine{}
	m := &testModel{reply: func(context.Context, int, func(string)) ([]ToolCall, error) { return nil, nil }}
	result, _ := converse(t, line, m, nil, func(s *Service) { s.cfg.Transcriber = brokenTranscriber{} })
	for said := 1; ; said++ {
		line.say(append(make([]int16, 16_000), spoken("what are your opening hours", 8000)...))
		before := line.time()
		await(t, "the end of the words", func() bool { return len(result) > 0 || line.time() > before+6*8000 })
		if len(result) > 0 {
			break
		}
		if said == 4 {
			t.Fatal("the conversation goes on")
		}
	}
	if r := <-result; r.Outcome != Failed || !strings.Contains(r.Reason, "the engine has crashed") {
		t.Errorf("ended with %+v", r)
	}
}
