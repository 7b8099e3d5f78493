package speech

import (
	"context"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/engine/enginetest"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/protocol/media/wav"
)

func TestOpenAIRecognizer_TermsPrompt(t *testing.T) {
	t.Parallel()
	terms := termsOf("Ilse Vandermeer", "Zyntrix")
	for dialect, want := range map[string]struct{ forms, text string }{
		"speaches":   {"verbose_json/trueIlse Vandermeer, Zyntrix verbose_json/trueIlse Vandermeer, Zyntrix", "Hello there."},
		"promptless": {"verbose_json/trueIlse Vandermeer, Zyntrix verbose_json/true verbose_json/true", "Hello there."},
		"echo":       {"verbose_json/trueIlse Vandermeer, Zyntrix verbose_json/trueIlse Vandermeer, Zyntrix", ""},
	} {
		s := &enginetest.FakeOpenAI{Dialect: dialect}
		l, err := NewRecognizer(s.Serve(t))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			h, err := l.Transcribe(context.Background(), transcript.Clip{PCM: make([]int16, 8000), Rate: 8000, Terms: terms})
			if err != nil || h.Text != want.text {
				t.Errorf("%s: heard %+v, %v", dialect, h, err)
			}
		}
		if got := s.Forms(); got != want.forms {
			t.Errorf("%s: asked for %s, want %s", dialect, got, want.forms)
		}
	}
	if p := termsPrompt(termsOf(strings.Fields(strings.Repeat("Vandermeer ", 200))...)); len(p) > maxPromptBytes ||
		len(p) < maxPromptBytes-20 {
		t.Errorf("the prompt of many terms has %d bytes", len(p))
	}
}

func TestOpenAIRecognizer_Dialects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect, forms string
		words          int
		text           string
	}{
		{"openai", "verbose_json/true verbose_json/true", 2, "Hello there."},
		{"whisper.cpp", "verbose_json/true verbose_json/true", 2, "Hello there."},
		{"speaches", "verbose_json/true verbose_json/true", 0, "Hello there."},
		{"strict", "verbose_json/true verbose_json/false verbose_json/false", 0, "Hello there."},
		{"vllm", "verbose_json/true verbose_json/false json/false json/false", 0, "Hello there."},
		{"imagines", "verbose_json/true verbose_json/true", 0, ""},
	} {
		s := &enginetest.FakeOpenAI{Dialect: c.dialect}
		l, err := NewRecognizer(s.Serve(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Ready(context.Background()); err != nil {
			t.Fatalf("%s: %v", c.dialect, err)
		}
		h, err := l.Transcribe(context.Background(), transcript.Clip{PCM: make([]int16, 8000), Rate: 8000, Language: "en-GB"})
		if err != nil || h.Text != c.text || len(h.Words) != c.words {
			t.Errorf("%s: heard %+v, %v; want %q with %d words", c.dialect, h, err, c.text, c.words)
		}
		if c.words > 0 && (h.Words[0].Text != "Hello" || h.Words[0].StartMS != 100 || h.Words[0].Confidence < 0.5) {
			t.Errorf("%s: first word is %+v", c.dialect, h.Words[0])
		}
		if got := s.Forms(); got != c.forms {
			t.Errorf("%s: asked for %s, want %s", c.dialect, got, c.forms)
		}
	}
}

// https://github.com/moonshine-ai/moonshine/issues/83
func TestOpenAIRecognizer_LoopDecodedAgain(t *testing.T) {
	t.Parallel()
	w, err := wav.Read("testdata/park.wav")
	if err != nil {
		t.Fatal(err)
	}
	s := &enginetest.FakeOpenAI{Dialect: "loops"}
	l, err := NewRecognizer(s.Serve(t))
	if err != nil {
		t.Fatal(err)
	}
	h, err := l.Transcribe(context.Background(), transcript.Clip{PCM: w.PCM[0], Rate: 8000, Language: "en"})
	if err != nil || h.Text != "Hello there." || s.Forms() != "verbose_json/true verbose_json/true" {
		t.Errorf("heard %+v, %v after %s", h, err, s.Forms())
	}
}

func TestOpenAIRecognizer_ErrorHidesKey(t *testing.T) {
	t.Parallel()
	s := &enginetest.FakeOpenAI{Dialect: "broken"}
	l, err := NewRecognizer(s.Serve(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Transcribe(context.Background(), transcript.Clip{PCM: make([]int16, 8000), Rate: 8000})
	if err == nil || !strings.Contains(err.Error(), "out of memory") || strings.Contains(err.Error(), "secret-key") {
		t.Errorf("error is %v", err)
	}
	if got := s.Forms(); got != "verbose_json/true verbose_json/true" {
		t.Errorf("asked %s: a server that is out of order is asked twice, in the same form", got)
	}
	if _, err := NewRecognizer(engine.Config{Engine: "gopher://x"}); err == nil {
		t.Error("an address that is not http is taken")
	}
}

func TestNewRecognizer_EngineNames(t *testing.T) {
	t.Parallel()
	for use, want := range map[string]bool{"builtin": true, "": true, "off": false} {
		if l, err := NewRecognizer(engine.Config{Engine: use}); err != nil || (l != nil) != want {
			t.Errorf("%q gives %v, %v", use, l, err)
		}
	}
}
