package engine

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
	plainSearch  = "plain" // the search that knows no terms
	keptSearches = 2       // with terms, at 40 MB each; the one that was not used for the longest goes
	arpaForm     = 1       // of a language model in a file
	maxSounds    = 20_000  // pronunciations a decoder learns before another takes its place: it cannot unlearn one
)

// termSearches are the searches of a decoder by the vocabularies they know. The dictionary of a decoder is one for all, but a search finds only
// words that its language model has, and each vocabulary has a model of its own: what one knows, no other finds.
type termSearches struct {
	base   uintptr           // the language model of the language
	sounds map[string]string // what was added to the dictionary, by phones
	kept   []*termSearch     // the latest last
	plain  string            // the search that knows no terms; empty where there is none just now
	made   int               // searches so far, for their names
}

// termSearch is a search that knows a vocabulary.
type termSearch struct {
	key, name string
	spelling  *spelling
}

// newTermSearches takes over a decoder as it was opened.
func newTermSearches(lib *sphinxLibrary, ps uintptr) (*termSearches, error) {
	usual := lib.search(ps)
	set := lib.modelOf(ps, usual) // of one model
	if set == 0 {
		return nil, fmt.Errorf("pocketsphinx does not give its language model")
	}
	// The model outlives its search.
	return &termSearches{base: lib.retainModel(lib.partOfModel(set, 0)), sounds: map[string]string{}, plain: usual}, nil
}

// knowing decodes with the words of a vocabulary among those of the language. Nothing of it is found by another call's decoding.
func (s *sphinx) knowing(terms []transcript.Term, decode func() ([]transcript.Word, error)) ([]transcript.Word, error) {
	search, err := s.searchOf(terms)
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

// searchOf finds or makes the search for a vocabulary; it is nil for the plain one, which is there then.
func (s *sphinx) searchOf(terms []transcript.Term) (*termSearch, error) {
	if len(terms) == 0 {
		return nil, s.plainSearch()
	}
	key, err := keyOf(terms)
	if err != nil {
		return nil, err
	}
	t := s.terms
	if i := slices.IndexFunc(t.kept, func(k *termSearch) bool { return k.key == key }); i >= 0 {
		found := t.kept[i]
		t.kept = append(slices.Delete(t.kept, i, i+1), found)
		return found, nil
	}
	if len(t.sounds) > maxSounds {
		if err := s.reopen(); err != nil {
			return nil, err
		}
		t = s.terms
	}
	made := &termSearch{key: key, name: fmt.Sprintf("terms%d", t.made)}
	t.made++
	if made.spelling, err = s.learn(terms); err != nil {
		return nil, err
	}
	if made.spelling.empty() {
		return nil, s.plainSearch()
	}
	return made, s.addSearch(made)
}

// keyOf is the same for the same terms in another order: of who takes part in a call the names come first, and differ from call to call.
func keyOf(terms []transcript.Term) (string, error) {
	sorted := slices.SortedFunc(slices.Values(terms), func(a, b transcript.Term) int { return strings.Compare(a.Text, b.Text) })
	b, err := json.Marshal(sorted)
	if err != nil {
		return "", fmt.Errorf("read vocabulary: %w", err)
	}
	return string(b), nil
}

// plainSearch brings back the search that knows no terms.
func (s *sphinx) plainSearch() error {
	if s.terms.plain != "" {
		return nil
	}
	if s.lib.setModel(s.ps, plainSearch, s.terms.base) < 0 {
		return fmt.Errorf("pocketsphinx does not search by its language model")
	}
	s.terms.plain = plainSearch
	return nil
}

// addSearch makes the search for a spelling and lets go of the oldest where there are too many.
func (s *sphinx) addSearch(made *termSearch) error {
	own, err := s.modelOf(made.spelling)
	if err != nil {
		return err
	}
	mixed := s.lib.mixed(s.ps, s.terms.base, own)
	s.lib.freeModel(own)
	if mixed == 0 {
		return fmt.Errorf("pocketsphinx does not mix language models")
	}
	defer s.lib.freeModel(mixed)
	if s.lib.setModel(s.ps, made.name, mixed) < 0 {
		return fmt.Errorf("pocketsphinx does not search by a language model with %d words more", len(made.spelling.shown))
	}
	t := s.terms
	t.kept = append(t.kept, made)
	if len(t.kept) > keptSearches {
		s.lib.setSearch(s.ps, made.name) // the one that is let go may be the one in use
		s.lib.dropSearch(s.ps, t.kept[0].name)
		t.kept = slices.Delete(t.kept, 0, 1)
	}
	return nil
}

// modelOf makes the language model of a spelling alone.
func (s *sphinx) modelOf(p *spelling) (uintptr, error) {
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
	m := s.lib.readModel(s.lib.config(s.ps), f.Name(), arpaForm, s.lib.logmath(s.ps))
	if m == 0 {
		return 0, fmt.Errorf("pocketsphinx does not read a language model of %d words", len(p.shown))
	}
	return m, nil
}

// sound adds ways to say something to the dictionary, and gives the words they are found as.
func (s *sphinx) sound(phones string) (word string, err error) {
	t := s.terms
	if word, known := t.sounds[phones]; known {
		return word, nil
	}
	if err := s.dropSearches(); err != nil {
		return "", err
	}
	word = fmt.Sprintf("%s%d", ownPrefix, len(t.sounds))
	if s.lib.addWord(s.ps, word, phones, 0) < 0 {
		return "", fmt.Errorf("pocketsphinx does not take the phones %s", phones)
	}
	t.sounds[phones] = word
	return word, nil
}

// ownPrefix begins the words that were added to a dictionary; no word of the language has digits behind it.
const ownPrefix = "own"

// isOwn tells whether a word was added to the dictionary.
func isOwn(word string) bool {
	return strings.HasPrefix(word, ownPrefix) && strings.ContainsAny(word, "0123456789")
}

// dropSearches lets go of all searches: a word that is added to the dictionary is added to their models.
func (s *sphinx) dropSearches() error {
	t := s.terms
	if t.plain != "" && s.lib.dropSearch(s.ps, t.plain) < 0 {
		return fmt.Errorf("pocketsphinx does not let go of its search")
	}
	t.plain = ""
	for _, k := range t.kept {
		if s.lib.dropSearch(s.ps, k.name) < 0 {
			return fmt.Errorf("pocketsphinx does not let go of a search")
		}
	}
	t.kept = nil
	return nil
}

// reopen takes a fresh decoder for one that has learned too much.
func (s *sphinx) reopen() error {
	s.lib.freeModel(s.terms.base)
	s.lib.close(s.ps)
	return s.open()
}

// phonesOf is how the dictionary says a word; empty where it does not have it.
func (s *sphinx) phonesOf(word string) string {
	p := s.lib.lookup(s.ps, word)
	if p == 0 {
		return ""
	}
	defer s.lib.free(p)
	return goString(p)
}

// ordinary tells whether everybody uses a word: whether it is likely enough to be found without more.
func (s *sphinx) ordinary(word string) bool {
	id := s.lib.wordID(s.terms.base, word)
	if id == s.lib.unknownID(s.terms.base) {
		return false
	}
	var used int32
	return s.lib.exp(s.lib.logmath(s.ps), s.lib.probability(s.terms.base, id, 0, 0, unsafe.Pointer(&used))) >= rareWord
}
