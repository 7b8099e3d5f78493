package speech

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine/speech/itn"
	"soniq/internal/intelligence/transcript"
)

// Names that a recogniser does not know are corrected to the terms of the vocabulary.
func TestCorrectText_TermsWritten(t *testing.T) {
	t.Parallel()
	own := append(termsOf("Ilse Vandermeer", "Krzysztof Wojciechowski", "Gwendolyn Pritchard", "Rajesh Chakraborty", "Florian Oberhauser", "Tamsin Green", "Zyntrix",
		"Plumbatec", "Hydrosentry", "Kestrelbrook", "Tessaline", "Vantora", "Wexcombe Dental"),
		transcript.Term{Text: "Xiomara", SoundsLike: []string{"see oh mara"}, UserDefined: true},
		transcript.Term{Text: "Mr Quorvo", SoundsLike: []string{"M IH S T ER K W AO R V OW"}, UserDefined: true},
		transcript.Term{Text: "ACME", UserDefined: true})
	all := newTargetIndex(own)
	for heard, want := range map[string]string{
		"We are having trouble with the Plymba Tech since Monday.": "We are having trouble with the Plumbatec since Monday.",
		"I want two hydrogen-tree units.":                          "I want two Hydrosentry units.",
		"Yes, Gwendoline Pritcherd will call.":                     "Yes, Gwendolyn Pritchard will call.",
		"Give it to Rajesh to Krab already.":                       "Give it to Rajesh Chakraborty.",
		"It was Florian Albert Hauser, yes.":                       "It was Florian Oberhauser, yes.",
		"by Florian, Albert Hauser, yes":                           "by Florian Oberhauser, yes",
		"Yes, Florian, Zentrix, all of it":                         "Yes, Florian, Zyntrix, all of it",
		"Castrial Brook, how can I help?":                          "Kestrelbrook, how can I help?",
		"Wexcum dental's invoice":                                  "Wexcombe Dental's invoice",
		"Our Ventura stopped.":                                     "Our Vantora stopped.",
		"zintricks's box is Zyntrix’s.":                            "Zyntrix's box is Zyntrix’s.",
		"Is (Zentrix) there?":                                      "Is (Zyntrix) there?",
		"Could I speak to Siomara?":                                "Could I speak to Xiomara?",
		"tamsin green and a green leaf":                            "Tamsin Green and a green leaf",
		"the acme of success":                                      "the ACME of success",
		"Mister Corvo is here.":                                    "Mr Quorvo is here.",
	} {
		if got := all.correctText(heard); got != want {
			t.Errorf("%q became\n %q, want\n %q", heard, got, want)
		}
	}
}

func TestCorrectText_OtherWordsUnchanged(t *testing.T) {
	t.Parallel()
	all := newTargetIndex(termsOf("Ewan Carmichael", "Nguyen Thanh Huong", "Petra Novakova", "Freya Dagfinnsson", "Peter Twotter", "Tessaline", "Sixtee", "Forteez", "Niamh O'Rourke",
		"Amara Nwosu", "Sanne Hoekstra"))
	for _, text := range []string{
		"I can put you on the list.", "It is more than I thought.", "Peter called.", "I have it for a friend.", "It costs sixty, no, forty dollars.",
		"He has 60 or 16 of them.", "Tomorrow I will be in Madrid.", "Thank goodness, never again!", "The vaseline is on the table.", "  two  spaces ", "", "?!"} {
		if got := all.correctText(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Words with times are corrected too. If a term replaces several words it divides their time.
func TestCorrect_WordTimesKept(t *testing.T) {
	t.Parallel()
	all := newTargetIndex(termsOf("Ilse Vandermeer", "Plumbatec", "Rajesh Chakraborty"))
	heard := func(words ...string) (h transcript.Recognition) {
		for i, w := range words {
			h.Words = append(h.Words, transcript.Word{Text: w, StartMS: 100 * i, EndMS: 100*i + 90, Confidence: 0.5})
		}
		h.Text = strings.Join(words, " ")
		return h
	}
	for _, c := range []struct{ heard, want string }{
		{"the Plymba Tech.", "the 0-90 Plumbatec. 100-290"},
		{"Ilsa Vandermere called", "Ilse 0-90 Vandermeer 100-190 called 200-290"},
		{"Rajesh to Krab already", "Rajesh 0-137 Chakraborty 137-390"},
	} {
		h := all.correct(heard(strings.Fields(c.heard)...))
		var got, text []string
		for _, w := range h.Words {
			got, text = append(got, fmt.Sprintf("%s %d-%d", w.Text, w.StartMS, w.EndMS)), append(text, w.Text)
		}
		if strings.Join(got, " ") != c.want || strings.Join(text, " ") != h.Text {
			t.Errorf("%q became %q and %q, want %q", c.heard, got, h.Text, c.want)
		}
	}
}

// Terms are matched in the clips of their own organisation only, and in English only.
func TestTargetCache_TermsOfClipOnly(t *testing.T) {
	t.Parallel()
	var kept targetCache
	clip := func(language string, names ...string) transcript.Clip {
		return transcript.Clip{Language: language, Terms: termsOf(names...)}
	}
	for range 2 {
		for i := range 2 * maxCachedIndexes {
			if got := kept.indexOf(clip("en", fmt.Sprintf("Brovik%c", 'a'+i))).correctText("Our Zentrix."); got != "Our Zentrix." {
				t.Fatalf("%q", got)
			}
			if got := kept.indexOf(clip("en-GB", "Zyntrix")).correctText("Our Zentrix."); got != "Our Zyntrix." {
				t.Fatalf("%q", got)
			}
		}
	}
	if len(kept.cached) != maxCachedIndexes {
		t.Errorf("%d vocabularies are kept", len(kept.cached))
	}
	if all := kept.indexOf(clip("de", "Zyntrix")); all != nil {
		t.Errorf("German has %d targets", len(all.list))
	}
	slow := transcript.Term{Text: "Zyntrix", SoundsLike: []string{"zebra"}}
	if kept.key([]transcript.Term{slow}) == kept.key(termsOf("Zyntrix")) {
		t.Error("a term that is said otherwise is taken for the same")
	}
}

// manyTerms returns n made-up names.
func manyTerms(n int) []transcript.Term {
	parts := strings.Fields("bar ken dol mir vas tor lin gra pel sut wen hof rik zan mo")
	var names []string
	for i := 0; len(names) < n; i++ {
		k := len(parts)
		first, last := parts[i%k]+parts[i/k%k], parts[i/k/k%k]+parts[(i/7)%k]+parts[(i/3)%k]
		if name := itn.Capitalize(first) + " " + itn.Capitalize(last); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return termsOf(names...)
}

func BenchmarkCorrectText(b *testing.B) {
	text := "Good morning, I spoke to somebody last week about the delivery of the hydrogen-tree, and nobody called me back since then, so I would like to cancel the order."
	for _, n := range []int{500, 5000} {
		clip := transcript.Clip{Terms: manyTerms(n)}
		b.Run(fmt.Sprintf("terms=%d", n), func(b *testing.B) {
			var kept targetCache
			kept.indexOf(clip)
			for b.Loop() {
				kept.indexOf(clip).correctText(text)
			}
		})
	}
}
