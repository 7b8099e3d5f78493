package speech

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"soniq/internal/intelligence/transcript"
)

// termsOf returns names that are in no dictionary as terms, as an organisation's directory provides them. Names of
// two words are persons.
func termsOf(names ...string) (all []transcript.Term) {
	for _, n := range names {
		all = append(all, transcript.Term{Text: n, Person: strings.Contains(n, " ")})
	}
	return all
}

func TestPocketSphinx_VocabularyTerms(t *testing.T) {
	t.Parallel()
	s := newTestSphinx(t, 1)
	if loadFliteLexicon() == nil {
		t.Skip("libflite1 is not installed")
	}
	clip := spokenClip(t, "This is Ilse Vandermeer about your Zyntrix.")
	hear := func(terms ...transcript.Term) string {
		clip.Terms = terms
		h, err := s.Transcribe(context.Background(), clip)
		if err != nil {
			t.Fatal(err)
		}
		return h.Text
	}
	before := hear()
	own := termsOf("Ilse Vandermeer", "Zyntrix")
	if got := hear(own...); got != "This is Ilse Vandermeer about your Zyntrix." {
		t.Errorf("with its terms: %q", got)
	}
	if got := hear(); got != before {
		t.Errorf("without any, after them: %q, before them %q", got, before)
	}
	others := hear(termsOf("Krzysztof Wojciechowski", "Plumbatec")...)
	for _, w := range []string{"Ilse", "Vandermeer", "Zyntrix", "Krzysztof", "Plumbatec"} {
		if strings.Contains(before+others, w) {
			t.Errorf("%s is in %q or %q", w, before, others)
		}
	}
	if got := hear(own...); got != "This is Ilse Vandermeer about your Zyntrix." {
		t.Errorf("with its terms again: %q", got)
	}
	for i := range 2 * maxSearches { // more vocabularies than searches are kept
		hear(termsOf(fmt.Sprintf("Brovik%c", 'a'+i))...)
	}
	if got := hear(own...); got != "This is Ilse Vandermeer about your Zyntrix." {
		t.Errorf("with its terms after many others: %q", got)
	}
}
