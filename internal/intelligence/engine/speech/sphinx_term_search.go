package speech

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"soniq/internal/intelligence/transcript"
)

const (
	plainSearch       = "plain" // search without terms
	maxSearches       = 2       // searches with terms, 40 MB each; the least recently used is removed
	arpaFormat        = 1       // file format of a language model
	maxPronunciations = 20_000  // pronunciations after which a decoder is replaced: words cannot be removed from its dictionary
)

// termSearches holds the searches of a decoder, one per vocabulary. A decoder has one dictionary for all, but a
// search recognises only words of its language model, and each vocabulary has its own model. So no vocabulary affects
// another.
type termSearches struct {
	base       uintptr           // language model of the language
	addedWords map[string]string // words added to the dictionary, by phones
	cached     []*termSearch     // most recently used last
	plain      string            // name of the search without terms; empty if there is none at the moment
	made       int               // number of searches made, for their names
}

// termSearch is a search with a vocabulary.
type termSearch struct {
	key, name string
	spelling  *vocabularySpelling
}

// newTermSearches returns the searches of a decoder that was just opened.
func newTermSearches(lib *sphinxLibrary, ps uintptr) (*termSearches, error) {
	usual := lib.search(ps)
	set := lib.modelOf(ps, usual) // a set of one model
	if set == 0 {
		return nil, fmt.Errorf("pocketsphinx does not give its language model")
	}
	// The model outlives its search.
	return &termSearches{base: lib.retainModel(lib.partOfModel(set, 0)), addedWords: map[string]string{}, plain: usual}, nil
}

// withTerms decodes with the words of a vocabulary in addition to those of the language. They do not affect the
// decoding of other calls.
func (s *sphinxDecoder) withTerms(terms []transcript.Term, decode func() ([]transcript.Word, error)) ([]transcript.Word, error) {
	search, err := s.searchFor(terms)
	if err != nil {
		return nil, err
	}
	name := s.terms.plain
	if search != nil {
		name = search.name
	}
	if s.lib.setSearch(s.ps, name) < 0 {
		return nil, fmt.Errorf("pocketsphinx does not search by the model %s", name)
	}
	words, err := decode()
	if search != nil {
		words = search.spelling.write(words)
	}
	return words, err
}

// searchFor returns the search for a vocabulary and creates it if necessary. It returns nil for the search without
// terms, which exists then.
func (s *sphinxDecoder) searchFor(terms []transcript.Term) (*termSearch, error) {
	if len(terms) == 0 {
		return nil, s.restorePlainSearch()
	}
	key, err := vocabularyKey(terms)
	if err != nil {
		return nil, err
	}
	t := s.terms
	if i := slices.IndexFunc(t.cached, func(k *termSearch) bool { return k.key == key }); i >= 0 {
		found := t.cached[i]
		t.cached = append(slices.Delete(t.cached, i, i+1), found)
		return found, nil
	}
	if len(t.addedWords) > maxPronunciations {
		if err := s.reopen(); err != nil {
			return nil, err
		}
		t = s.terms
	}
	made := &termSearch{key: key, name: fmt.Sprintf("terms%d", t.made)}
	t.made++
	if made.spelling, err = s.addVocabulary(terms); err != nil {
		return nil, err
	}
	if made.spelling.empty() {
		return nil, s.restorePlainSearch()
	}
	return made, s.addSearch(made)
}

// vocabularyKey returns a key that does not depend on the order of the terms: the names of a call's participants come
// first, and differ from call to call.
func vocabularyKey(terms []transcript.Term) (string, error) {
	sorted := slices.SortedFunc(slices.Values(terms), func(a, b transcript.Term) int { return strings.Compare(a.Text, b.Text) })
	b, err := json.Marshal(sorted)
	if err != nil {
		return "", fmt.Errorf("read vocabulary: %w", err)
	}
	return string(b), nil
}

// restorePlainSearch creates the search without terms if it does not exist.
func (s *sphinxDecoder) restorePlainSearch() error {
	if s.terms.plain != "" {
		return nil
	}
	if s.lib.setModel(s.ps, plainSearch, s.terms.base) < 0 {
		return fmt.Errorf("pocketsphinx does not search by its language model")
	}
	s.terms.plain = plainSearch
	return nil
}

// addSearch creates a search and removes the least recently used one if there are too many.
func (s *sphinxDecoder) addSearch(made *termSearch) error {
	own, err := s.languageModelOf(made.spelling)
	if err != nil {
		return err
	}
	mixed := s.lib.mixModels(s.ps, s.terms.base, own)
	s.lib.freeModel(own)
	if mixed == 0 {
		return fmt.Errorf("pocketsphinx does not mix language models")
	}
	defer s.lib.freeModel(mixed)
	if s.lib.setModel(s.ps, made.name, mixed) < 0 {
		return fmt.Errorf("pocketsphinx does not search by a language model with %d words more", len(made.spelling.writtenForms))
	}
	t := s.terms
	t.cached = append(t.cached, made)
	if len(t.cached) > maxSearches {
		s.lib.setSearch(s.ps, made.name) // the removed one may be the active search
		s.lib.dropSearch(s.ps, t.cached[0].name)
		t.cached = slices.Delete(t.cached, 0, 1)
	}
	return nil
}

// languageModelOf returns a language model with the words of a vocabulary only.
func (s *sphinxDecoder) languageModelOf(p *vocabularySpelling) (uintptr, error) {
	f, err := os.CreateTemp("", "soniq-terms-*.arpa")
	if err != nil {
		return 0, fmt.Errorf("write language model: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(p.arpa())
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return 0, fmt.Errorf("write language model: %w", err)
	}
	m := s.lib.readModel(s.lib.config(s.ps), f.Name(), arpaFormat, s.lib.logmath(s.ps))
	if m == 0 {
		return 0, fmt.Errorf("pocketsphinx does not read a language model of %d words", len(p.writtenForms))
	}
	return m, nil
}

// addPronunciation adds a pronunciation to the dictionary and returns its word.
func (s *sphinxDecoder) addPronunciation(phones string) (word string, err error) {
	t := s.terms
	if word, known := t.addedWords[phones]; known {
		return word, nil
	}
	if err := s.dropSearches(); err != nil {
		return "", err
	}
	word = fmt.Sprintf("%s%d", ownPrefix, len(t.addedWords))
	if s.lib.addWord(s.ps, word, phones, 0) < 0 {
		return "", fmt.Errorf("pocketsphinx does not take the phones %s", phones)
	}
	t.addedWords[phones] = word
	return word, nil
}

// ownPrefix begins words that were added to a dictionary; words of the language have no digits after it.
const ownPrefix = "own"

// isOwn reports whether a word was added to the dictionary.
func isOwn(word string) bool {
	return strings.HasPrefix(word, ownPrefix) && strings.ContainsAny(word, "0123456789")
}

// dropSearches removes all searches, because a word added to the dictionary is added to the models of existing
// searches.
func (s *sphinxDecoder) dropSearches() error {
	t := s.terms
	if t.plain != "" && s.lib.dropSearch(s.ps, t.plain) < 0 {
		return fmt.Errorf("pocketsphinx does not let go of its search")
	}
	t.plain = ""
	for _, k := range t.cached {
		if s.lib.dropSearch(s.ps, k.name) < 0 {
			return fmt.Errorf("pocketsphinx does not let go of a search")
		}
	}
	t.cached = nil
	return nil
}

// reopen replaces a decoder whose dictionary has grown too large.
func (s *sphinxDecoder) reopen() error {
	s.lib.freeModel(s.terms.base)
	s.lib.close(s.ps)
	return s.open()
}

// phonesOf returns the pronunciation of a word in the dictionary; "" if it is not there.
func (s *sphinxDecoder) phonesOf(word string) string {
	p := s.lib.lookup(s.ps, word)
	if p == 0 {
		return ""
	}
	defer s.lib.free(p)
	return goString(p)
}

// isCommon reports whether a word is probable enough to be recognised without help.
func (s *sphinxDecoder) isCommon(word string) bool {
	id := s.lib.wordID(s.terms.base, word)
	if id == s.lib.unknownID(s.terms.base) {
		return false
	}
	var used int32
	return s.lib.exp(s.lib.logmath(s.ps), s.lib.probability(s.terms.base, id, 0, 0, unsafe.Pointer(&used))) >= commonWordProb
}
