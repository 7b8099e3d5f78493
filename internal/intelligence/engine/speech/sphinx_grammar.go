package speech

import (
	"fmt"
	"slices"
	"strings"

	"soniq/internal/intelligence/transcript"
)

// grammarSearch is the name of the search for expected phrases.
const grammarSearch = "expected"

// fillersBefore and fillersAfter are words that callers say around the requested phrase.
var (
	fillersBefore = []string{"i want", "i need", "i would like", "can i have", "could i have", "can i speak to", "i want to speak to",
		"may i speak to", "please", "the",
		"give me", "connect me to", "put me through to", "talk to", "speak to", "um", "uh", "hello", "hi", "yes"}
	fillersAfter = []string{"please", "department", "thank you", "thanks"}
)

// otherWords may be said instead of an expected phrase: without them any utterance would be recognised as the phrase
// it sounds most like. Short words are not among them: in sequence they sound like anything.
var otherWords = strings.Fields(`about after again anything back because been call come could does done down else even find first from going
	good great have help here hold just know last like little long look make many maybe mean minute moment more much name never nobody none
	nothing number okay only operator other over people person problem question really right said some somebody someone something sorry
	still take tell than that their them then there they thing think this time today tomorrow understand until very wait week well were what
	when where which will with wonder work would wrong year yesterday your computer picture window table weather music banana holiday`)

// withPhrases decodes with a grammar of the expected phrases, and without one if there are none. Phrases with words
// that are not in the dictionary are omitted; if none is left, decoding is unrestricted.
func (s *sphinxDecoder) withPhrases(phrases []string, decode func() ([]transcript.Word, error)) ([]transcript.Word, error) {
	known := s.knownPhrases(phrases)
	if len(known) == 0 {
		return decode()
	}
	usual := s.lib.search(s.ps)
	if s.lib.setGrammar(s.ps, grammarSearch, s.grammar(known)) < 0 {
		return nil, fmt.Errorf("pocketsphinx refused the grammar of %d phrases", len(known))
	}
	if s.lib.setSearch(s.ps, grammarSearch) < 0 {
		return nil, fmt.Errorf("pocketsphinx does not search by its grammar")
	}
	defer func() {
		s.lib.setSearch(s.ps, usual)
		s.lib.dropSearch(s.ps, grammarSearch)
	}()
	return decode()
}

// knownPhrases returns the phrases whose words are all in the dictionary, in its spelling.
func (s *sphinxDecoder) knownPhrases(phrases []string) (known []string) {
	for _, p := range phrases {
		words := spokenWords(p)
		if len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return s.lib.lookup(s.ps, w) == 0 }) {
			known = append(known, strings.Join(words, " "))
		}
	}
	return known
}

// grammar returns the grammar of phrases in the Java Speech Grammar Format.
func (s *sphinxDecoder) grammar(phrases []string) string {
	expected := map[string]bool{}
	for _, p := range phrases {
		for _, w := range strings.Fields(p) {
			expected[w] = true
		}
	}
	around := func(all []string) string {
		return strings.Join(s.knownPhrases(slices.DeleteFunc(slices.Clone(all), func(p string) bool { return expected[p] })), " | ")
	}
	return "#JSGF V1.0;\ngrammar menu;\npublic <said> = /1/ [<before>] <phrase> [<after>] | /0.00001/ <other>+;\n<before> = " +
		around(fillersBefore) +
		";\n<after> = " + around(fillersAfter) + ";\n<phrase> = " + strings.Join(phrases, " | ") + ";\n<other> = " + around(otherWords) +
		";\n"
}

// plainWords returns the words of a text in lower case, letters and apostrophes only.
func plainWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && r != '\'' })
}
