package speech

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/transcript"
)

// vocabularySpelling maps the dictionary words of a vocabulary to their written form.
type vocabularySpelling struct {
	writtenForms   map[string]string   // written form, by dictionary word
	standalone     []string            // words that may occur alone, in the order of the terms
	standaloneSet  map[string]bool     // set of the same
	followers      map[string][]string // words that follow a word in a term
	multiWordTerms [][]string          // written form of terms of several words
}

// Probabilities of the words of a vocabulary in the language model, as logarithms to base ten. They were tuned with
// TestEvaluateTerms.
const (
	termLogProb    = -4.0
	pairLogProb    = -0.5
	commonWordProb = 1e-5 // minimum probability of a common English word
)

func (p *vocabularySpelling) empty() bool {
	return len(p.standalone) == 0 && len(p.followers) == 0 && len(p.multiWordTerms) == 0
}

// expect adds a word that may occur alone.
func (p *vocabularySpelling) expect(found string) {
	if !p.standaloneSet[found] {
		p.standaloneSet[found] = true
		p.standalone = append(p.standalone, found)
	}
}

// add adds a word that may occur alone, with its written form. Of words with the same pronunciation the first is
// written.
func (p *vocabularySpelling) add(found, written string) {
	p.expect(found)
	if _, known := p.writtenForms[found]; !known {
		p.writtenForms[found] = written
	}
}

// arpa returns the vocabulary as a language model in ARPA format. Words that only follow others have no probability
// of their own here: they are in the model of the language.
func (p *vocabularySpelling) arpa() string {
	var ones, twos []string
	one := func(chance float64, word string) { ones = append(ones, fmt.Sprintf("%.2f %s 0", chance, word)) }
	one(-99, "<s>")
	one(-99, "</s>")
	known := maps.Clone(p.standaloneSet)
	for _, w := range p.standalone {
		one(termLogProb, w)
	}
	twos = append(twos, "-99 <s> </s>") // a model needs at least one
	for _, from := range sortedKeys(p.followers) {
		for _, w := range append([]string{from}, p.followers[from]...) {
			if !known[w] {
				known[w] = true
				one(-99, w)
			}
		}
		for _, to := range p.followers[from] {
			twos = append(twos, fmt.Sprintf("%.2f %s %s", pairLogProb, from, to))
		}
	}
	return fmt.Sprintf("\\data\\\nngram 1=%d\nngram 2=%d\n\n\\1-grams:\n%s\n\n\\2-grams:\n%s\n\n\\end\\\n",
		len(ones), len(twos), strings.Join(ones, "\n"), strings.Join(twos, "\n"))
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// write replaces dictionary words by their written form.
func (p *vocabularySpelling) write(words []transcript.Word) []transcript.Word {
	for i, w := range words {
		if written, ok := p.writtenForms[w.Text]; ok {
			words[i].Text = written
		}
	}
	for i := range words {
		for _, term := range p.multiWordTerms {
			if hasPrefixWords(words[i:], term) {
				for k, w := range term {
					words[i+k].Text = w
				}
			}
		}
	}
	return words
}

// hasPrefixWords reports whether words begin with those of a term.
func hasPrefixWords(words []transcript.Word, term []string) bool {
	if len(words) < len(term) {
		return false
	}
	for k, w := range term {
		if !strings.EqualFold(words[k].Text, w) {
			return false
		}
	}
	return true
}

// legalForms are not spoken with a company's name.
var legalForms = engine.WordSet("ltd limited llc gmbh inc plc bv nv sa ag co corp oy ab srl kg")

// addVocabulary determines the pronunciations of the terms and adds them to the dictionary.
func (s *sphinxDecoder) addVocabulary(terms []transcript.Term) (*vocabularySpelling, error) {
	p := &vocabularySpelling{writtenForms: map[string]string{}, standaloneSet: map[string]bool{}, followers: map[string][]string{}}
	for _, t := range terms {
		learn := s.addTermBySpelling
		if len(t.SoundsLike) > 0 {
			learn = s.addTermByHints
		}
		if err := learn(p, t); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// addTermByHints adds a term with the pronunciations that a user entered.
func (s *sphinxDecoder) addTermByHints(p *vocabularySpelling, t transcript.Term) error {
	for _, like := range t.SoundsLike {
		phones := s.phonesOfHint(like)
		if phones == "" {
			continue
		}
		word, err := s.addPronunciation(phones)
		if err != nil {
			return err
		}
		p.add(word, t.Text)
	}
	return nil
}

// phonesOfHint returns the phones of one such pronunciation: phones, or words that sound like it.
func (s *sphinxDecoder) phonesOfHint(like string) string {
	fields := strings.Fields(like)
	if len(fields) > 0 && !slices.ContainsFunc(fields, func(f string) bool { return !cmuPhones[f] }) {
		return strings.Join(fields, " ")
	}
	return s.phonesOfWords(plainWords(folded(like)))
}

// phonesOfWords returns the phones of words in sequence; "" if one has no known pronunciation.
func (s *sphinxDecoder) phonesOfWords(words []string) string {
	var all []string
	for _, w := range words {
		phones := s.phonesOf(w)
		if phones == "" {
			phones = s.lexicon.phones(w)
		}
		if phones == "" {
			return ""
		}
		all = append(all, phones)
	}
	return strings.Join(all, " ")
}

// addTermBySpelling adds a term that is pronounced as it is written. Common words are only expected next to the other
// words of their term.
func (s *sphinxDecoder) addTermBySpelling(p *vocabularySpelling, t transcript.Term) error {
	var term []string
	var before []string
	for _, written := range strings.Fields(t.Text) {
		written = strings.Trim(written, `.,;:!?"()`)
		if plain := strings.ToLower(written); plain == "" || legalForms[plain] && !t.UserDefined {
			continue
		}
		found, err := s.dictionaryWords(written)
		if err != nil {
			return err
		}
		term = append(term, written)
		for _, w := range found {
			switch {
			case s.isCommon(w):
			case t.Person || isOwn(w):
				p.add(w, written)
			default:
				p.expect(w)
			}
			for _, b := range before {
				if !slices.Contains(p.followers[b], w) {
					p.followers[b] = append(p.followers[b], w)
				}
			}
		}
		before = found
	}
	switch {
	case len(term) > 1:
		p.multiWordTerms = append(p.multiWordTerms, term)
	case len(term) == 1 && t.UserDefined:
		for _, w := range before {
			p.add(w, term[0])
		}
	}
	return nil
}

// dictionaryWords returns the dictionary words for a written word, and adds them if the dictionary does not have it.
// It returns none if no pronunciation is known.
func (s *sphinxDecoder) dictionaryWords(written string) ([]string, error) {
	letters := folded(written)
	plain := strings.ToLower(letters)
	if !strings.ContainsFunc(plain, notLetter) && s.phonesOf(plain) != "" && !isAcronym(letters) {
		return []string{plain}, nil
	}
	var all []string
	for _, phones := range s.pronunciations(letters) {
		word, err := s.addPronunciation(phones)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all, nil
}

// pronunciations returns the phones of a word that is not in the dictionary, the most likely first.
func (s *sphinxDecoder) pronunciations(letters string) (ways []string) {
	way := func(phones string) {
		if phones != "" {
			ways = append(ways, phones)
		}
	}
	if isAcronym(letters) {
		way(spelledPhones(letters))
		if len(letters) < 4 || !strings.ContainsAny(letters, "AEIOU") {
			return ways
		}
	}
	plain := strings.ToLower(letters)
	parts := splitWordParts(letters)
	if len(parts) > 1 {
		way(s.phonesOfWords(parts))
	}
	if !strings.ContainsFunc(plain, notLetter) {
		way(s.lexicon.phones(plain))
		if n := len(plain); n > 3 && plain[n-1] == 'e' && len(ways) > 0 && !strings.ContainsAny(plain[n-2:n-1], "aeiou") {
			way(ways[len(ways)-1] + " AH") // names from elsewhere: Ilse, Heike
		}
	}
	return ways
}

// isAcronym reports whether a word is an abbreviation that is read letter by letter.
func isAcronym(letters string) bool {
	return len(letters) >= 2 && len(letters) <= 5 && strings.ToUpper(letters) == letters && !strings.ContainsAny(letters, "-'")
}

func spelledPhones(letters string) string {
	var all []string
	for _, r := range strings.ToLower(letters) {
		all = append(all, letterNames[r])
	}
	return strings.Join(all, " ")
}

// splitWordParts splits a word at hyphens and before capitals, and into single digits.
func splitWordParts(letters string) (parts []string) {
	var open []rune
	end := func() {
		if len(open) > 0 {
			parts = append(parts, strings.ToLower(string(open)))
		}
		open = nil
	}
	digit := map[rune]string{'0': "zero", '1': "one", '2': "two", '3': "three", '4': "four", '5': "five", '6': "six", '7': "seven",
		'8': "eight", '9': "nine"}
	for _, r := range letters {
		switch {
		case digit[r] != "":
			end()
			parts = append(parts, digit[r])
			continue
		case r == '-':
			end()
			continue
		case unicode.IsUpper(r) && len(open) > 0 && !unicode.IsUpper(open[len(open)-1]):
			end()
		}
		open = append(open, r)
	}
	end()
	return parts
}

func notLetter(r rune) bool { return (r < 'a' || r > 'z') && r != '\'' }

// letterReplacer replaces letters that Unicode decomposition does not split into a base letter and a mark.
var letterReplacer = strings.NewReplacer("ß", "ss", "ø", "o", "Ø", "O", "æ", "ae", "Æ", "Ae", "œ", "oe", "ł", "l", "Ł", "L", "đ", "d", "ı",
	"i", "’", "'")

// folded returns a text with English letters and digits only.
func folded(text string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(letterReplacer.Replace(text)) {
		if r == '\'' || r == '-' || r == ' ' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			b.WriteRune(r)
		}
	}
	return b.String()
}
