package speech

import (
	"context"
	"testing"

	"soniq/internal/intelligence/transcript"
)

// fixedRecognizer is a recogniser that always returns the same text.
type fixedRecognizer string

func (u fixedRecognizer) Engine() transcript.Engine   { return transcript.Engine{Name: "understood"} }
func (u fixedRecognizer) Ready(context.Context) error { return nil }
func (u fixedRecognizer) Transcribe(context.Context, transcript.Clip) (transcript.Recognition, error) {
	return transcript.Recognition{Text: string(u)}, nil
}

// speechPieces returns the audio of a caller who says something, piece by piece.
func speechPieces() <-chan []int16 {
	pcm := make(chan []int16, 200)
	for i := range 100 {
		piece := make([]int16, 160)
		for k := range piece {
			if i < 50 {
				piece[k] = int16(8000 * (k%2*2 - 1))
			}
		}
		pcm <- piece
	}
	close(pcm)
	return pcm
}

// Text of recognisers that take no list of phrases is matched to the phrase it sounds like; -1 for none.
func TestPhraseRecognizer_PhoneticMatch(t *testing.T) {
	t.Parallel()
	menu := []string{"sales", "billing", "technical support", "opening hours", "operator", "accounts", "yes", "no", "one", "2", "press three", "four hundred"}
	for heard, want := range map[string]int{
		"Sales.": 0, "Sails.": 0, "Can I speak to Sayles?": 0, "Building.": 1, "I would like bill in, please.": 1, "Tactical support": 2, "Open in hours.": 3,
		"Opening ours, please.": 3, "Operater please.": 4, "A counts.": 5,
		"Yeah.": 6, "Uh-huh.": 6, "Yep": 6, "Nope.": 7, "Know.": 7, "I do not know.": -1, "1": 8, "Press 1.": 8, "Won.": 8,
		"Two.": 9, "2.": 9, "Too.": 9, "Press to": 9, "Number two please": 9, "Press 3.": 10, "3": 10, "Option three": 10, "4": -1, "22": -1, "442": -1, "two hundred": 9,
		"": -1, "...": -1, "My cat is on the roof again.": -1, "What did you say?": -1, "Hold on a moment.": -1, "It was for my sister.": -1, "Say it again.": -1,
		"To be or not to be.": -1, "It is building up.": -1, "The operetta was nice.": -1,
	} {
		got, ok := NewPhraseRecognizer(fixedRecognizer(heard)).Recognize(context.Background(), menu, "en", speechPieces())
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q was taken for %d, want %d", heard, got, want)
		}
	}
}

// If two phrases are equally near, neither is returned.
func TestSoundsLike_AmbiguousRefused(t *testing.T) {
	t.Parallel()
	if i, ok := soundsLike([]string{"sales", "snails"}, "Sayles"); !ok || i != 0 {
		t.Errorf("what is said alike was taken for %d, %v", i, ok)
	}
	if i, ok := soundsLike([]string{"parking", "barking"}, "Parkin"); ok {
		t.Errorf("what is nearly as near to both was taken for %d", i)
	}
}

// A voice agent gets the phrase if the whole utterance sounds like it, else the recognised text.
func TestTurnTranscriber_PhoneticMatch(t *testing.T) {
	t.Parallel()
	phrases := []string{"opening hours", "where is my order", "talk to a person"}
	for _, c := range []struct{ heard, language, want string }{
		{"Open in hours?", "", "opening hours"},
		{"Where is my odour?", "en-US", "where is my order"},
		{"Where is my odour?", "de", "Where is my odour?"},
		{"I mean your opening hours on Monday.", "", "I mean your opening hours on Monday."},
		{"Do you have a garden?", "", "Do you have a garden?"},
	} {
		got, err := NewTurnTranscriber(fixedRecognizer(c.heard)).Transcribe(context.Background(), make([]int16, 8000), phrases, c.language)
		if err != nil || got != c.want {
			t.Errorf("%q: the agent is given %q (%v), want %q", c.heard, got, err, c.want)
		}
	}
}

// The second recogniser is used if the first recognised no phrase, unless its text is too long to be one.
func TestPhraseRecognizer_Fallback(t *testing.T) {
	t.Parallel()
	menu := []string{"sales", "technical support"}
	for _, c := range []struct {
		first, second fixedRecognizer
		want          int
	}{{"", "sales", 0}, {"Say, halls,", "sales", 0}, {"Technical support.", "sales", 1}, {"I do not know that.", "sales", -1}, {"Bananas.", "bananas", -1}} {
		got, ok := NewPhraseRecognizer(c.first).WithFallback(c.second).Recognize(context.Background(), menu, "en", speechPieces())
		if !ok {
			got = -1
		}
		if got != c.want {
			t.Errorf("%q, then %q: %d, want %d", c.first, c.second, got, c.want)
		}
	}
}
