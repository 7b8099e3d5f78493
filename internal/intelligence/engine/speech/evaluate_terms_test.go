package speech

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine/enginetest"
	"soniq/internal/intelligence/transcript"
)

// readLines reads the lines of a file.
func readLines(t testing.TB, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// TestEvaluateTerms measures how many spoken names are recognised with a vocabulary and without, and how often a name
// is inserted in calls that mention none. The phonetic correction was tuned with the sentences of the first list, not
// with those of the second. It is run by `make eval`.
func TestEvaluateTerms(t *testing.T) {
	if os.Getenv("SONIQ_EVAL") == "" {
		t.Skip("set SONIQ_EVAL=1 to run")
	}
	s := newEvaluatedRecognizer(t)
	pool := transcript.NewRecognizerPool(s, 2)
	t.Cleanup(pool.Close)
	flites := []voice{fliteVoice("rms"), fliteVoice("slt")}
	others := []voice{festival("ked_diphone"), espeak("en-us"), espeak("en-us+f3")}
	for _, list := range []struct{ name, file string }{{"names", "terms"}, {"other names", "terms-other"}} {
		terms := termsOf(readLines(t, "testdata/"+list.file+".txt")...)
		said := readLines(t, "testdata/"+list.file+"-said.txt")
		for _, v := range []struct {
			name  string
			terms []transcript.Term
		}{{"without terms", nil}, {fmt.Sprintf("with %d terms", len(terms)), terms}} {
			for who, voices := range map[string][]voice{"flite": flites, "festival and espeak": others} {
				found, all, wrong, words := namesFound(t, s, said, voices, terms, v.terms)
				enginetest.EvalRow(t, list.name+" found", v.name+", "+who, fmt.Sprintf("%d of %d; %.1f %% of %d other words wrong", found, all, 100*float64(wrong)/float64(words), words), "–")
			}
			wrong, words, inserted := namesInserted(t, pool, terms, v.terms)
			enginetest.EvalRow(t, list.name+" made up", v.name, fmt.Sprintf("%d in %d words that name none; %.1f %% wrong", inserted, words, 100*float64(wrong)/float64(words)), "–")
		}
	}
}

// rareTermWords returns the words of terms that occur neither in the evaluation scripts nor in common English.
func rareTermWords(terms []transcript.Term) map[string]bool {
	set := map[string]bool{}
	for _, term := range terms {
		for _, w := range enginetest.NormalizedWords(term.Text) {
			set[w] = len(w) > 2
		}
	}
	for _, w := range strings.Fields("dental logistics freight motors parcel dairy joinery bakery surveyors fencing roofing nurseries kennels optical green rose newman catering insurance veterinary plumbing energy travel cabinets optics lettings oscar") {
		delete(set, w)
	}
	return set
}

// namesFound recognises sentences with names, spoken by the voices in turn, and counts the names found and the word
// errors.
func namesFound(
	t *testing.T, s evaluatedRecognizer, sentences []string, voices []voice, all, terms []transcript.Term,
) (found, said, wrong, words int) {
	names := rareTermWords(all)
	for i, sentence := range sentences {
		clip := transcript.Clip{PCM: telephone(append(append(make([]float64, 3200), voices[i%len(voices)](t, sentence)...),
			make([]float64, 8000)...)),
			Rate: 8000, NarrowBand: true, Language: "en", Terms: terms}
		h, err := s.Transcribe(context.Background(), clip)
		if err != nil {
			t.Fatal(err)
		}
		want := enginetest.NormalizedWords(sentence)
		got := spokenForm(want, h.Text)
		for _, w := range want {
			if names[w] {
				said++
				if slices.Contains(got, w) {
					found++
				}
			}
		}
		isName := func(w string) bool { return names[w] }
		want = slices.DeleteFunc(want, isName)
		words += len(want)
		wrong += wordErrors(want, slices.DeleteFunc(slices.Clone(got), isName))
		t.Logf("%s\n  %s", sentence, h.Text)
	}
	return found, said, wrong, words
}

// namesInserted recognises calls that mention no names, and counts the names in the result.
func namesInserted(t *testing.T, pool *transcript.RecognizerPool, all, terms []transcript.Term) (wrong, words, inserted int) {
	names := rareTermWords(all)
	few, _ := evaluatedScripts()
	for _, sc := range enginetest.Scripts(t, few...) {
		c := speak(t, sc, "rms", "slt")
		segments, err := pool.TranscribeFile(context.Background(), bytes.NewReader(c.audio), int64(len(c.audio)), c.format, "en",
			func() []transcript.Term { return terms })
		if err != nil {
			t.Fatal(err)
		}
		for side, speaker := range []string{"caller", "agent"} {
			want := sc.Reference(speaker)
			got := recognizedWordsOf(want, segments, side)
			words += len(want)
			wrong += wordErrors(want, got)
			for _, w := range got {
				if names[w] && !slices.Contains(want, w) {
					inserted++
					t.Logf("%s: %s was not said by the %s", sc.ID, w, speaker)
				}
			}
		}
	}
	return wrong, words, inserted
}
