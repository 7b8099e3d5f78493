package speech

import (
	"context"
	"testing"
)

// Callers choose from a menu in their own words and voices. Utterances that are not on the menu match no phrase.
func TestPhraseRecognizer_PocketSphinx(t *testing.T) {
	t.Parallel()
	e := NewPhraseRecognizer(newTestSphinx(t, 1))
	menu := []string{"sales", "billing", "technical support", "opening hours", "operator"}
	say := map[string]int{"Sales.": 0, "I would like billing please.": 1, "Technical support.": 2, "Opening hours.": 3, "Can I speak to sales?": 0, "Operator please.": 4,
		"Billing": 1, "My cat is on the roof again.": -1, "What did you say?": -1, "The weather is very nice today.": -1}
	right, all := 0, 0
	for _, voice := range []string{"rms", "slt", "awb"} {
		for text, want := range say {
			pcm := make(chan []int16, 1000)
			clip := telephone(append(append(make([]float64, 16000), flite(t, voice, text)...), make([]float64, 32000)...))
			for len(clip) >= 160 {
				pcm <- clip[:160]
				clip = clip[160:]
			}
			close(pcm)
			got, ok := e.Recognize(context.Background(), menu, "en", pcm)
			if !ok {
				got = -1
			}
			all++
			if got == want {
				right++
			} else {
				t.Logf("%s: %q taken for %d, want %d", voice, text, got, want)
			}
		}
	}
	t.Logf("%d of %d right", right, all)
	if right < all*8/10 {
		t.Errorf("%d of %d right", right, all)
	}
}

func TestPhraseRecognizer_SilenceMatchesNothing(t *testing.T) {
	t.Parallel()
	e := NewPhraseRecognizer(nil)
	pcm := make(chan []int16, 200)
	for range 200 {
		pcm <- make([]int16, 160)
	}
	close(pcm)
	if i, ok := e.Recognize(context.Background(), []string{"sales"}, "en", pcm); ok {
		t.Errorf("heard %d", i)
	}
}
