package speech

import (
	"strings"
	"testing"

	"soniq/internal/intelligence/transcript"
)

func TestRecognitionOf_Sentences(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"hello i'm calling about my bill":         "Hello I'm calling about my bill.",
		"what can i do":                           "What can I do?",
		"the number is four four seven one":       "The number is 4471.",
		"one two":                                 "One two.",
		"how":                                     "How.",
		"that is nine one one oh please | is it":  "That is 9110 please. Is it.",
		"i am sorry | are you using a cable | no": "I am sorry. Are you using a cable? No.",
	} {
		var all []transcript.Word
		at := 0
		for _, w := range strings.Fields(words) {
			if w == "|" {
				at += 300
				continue
			}
			all = append(all, transcript.Word{Text: w, StartMS: at, EndMS: at + 200, Confidence: 0.5})
			at += 210
		}
		if got := recognitionOf(all); got.Text != want || got.Confidence < 0.49 || got.Confidence > 0.51 {
			t.Errorf("%q is written as %q, want %q", words, got.Text, want)
		}
	}
	if got := recognitionOf(nil); got.Text != "" {
		t.Errorf("nothing is written as %q", got.Text)
	}
}
