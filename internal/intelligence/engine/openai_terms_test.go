package engine

import (
	"context"
	"strings"
	"testing"

	"soniq/internal/intelligence/transcript"
)

func TestOpenAIRecognizer_TermsPrompt(t *testing.T) {
	t.Parallel()
	terms := termsOf("Ilse Vandermeer", "Zyntrix")
	for dialect, want := range map[string]struct{ forms, text string }{
		"speaches":   {"verbose_json/trueIlse Vandermeer, Zyntrix verbose_json/trueIlse Vandermeer, Zyntrix", "Hello there."},
		"promptless": {"verbose_json/trueIlse Vandermeer, Zyntrix verbose_json/true verbose_json/true", "Hello there."},
		"echo":       {"verbose_json/trueIlse Vandermeer, Zyntrix verbose_json/trueIlse Vandermeer, Zyntrix", ""},
	} {
		s := &fakeOpenAI{dialect: dialect}
		l, err := NewRecognizer(s.serve(t))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			h, err := l.Transcribe(context.Background(), transcript.Clip{PCM: make([]int16, 8000), Rate: 8000, Terms: terms})
			if err != nil || h.Text != want.text {
				t.Errorf("%s: heard %+v, %v", dialect, h, err)
			}
		}
		if got := s.forms(); got != want.forms {
			t.Errorf("%s: asked for %s, want %s", dialect, got, want.forms)
		}
	}
	if p := termsPrompt(termsOf(strings.Fields(strings.Repeat("Vandermeer ", 200))...)); len(p) > maxPromptBytes || len(p) < maxPromptBytes-20 {
		t.Errorf("the prompt of many terms has %d bytes", len(p))
	}
}
