package speech

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/transcript"
)

// target is one word of a term, or the whole term, that may have been said.
type target struct {
	words          []string    // written form
	plain          string      // its letters in lower case, without spaces
	pronunciations [][]phoneme // pronunciations
	weight         float32     // of the first pronunciation
	term           int         // index in the vocabulary
	wordIndex      int         // index of its word; wholeTerm for all of them
	wordCount      int         // number of words of the term
}

// wholeTerm means all words of a term.
const wholeTerm = -1

// targetIndex is the search index of the terms of a vocabulary; nil finds nothing. It is not changed after
// newTargetIndex.
type targetIndex struct {
	list           []target
	exact          map[string][]int // indexes in list, by letters
	pronunciations []pronunciation  // sorted by phones
	longest        int              // longest of spoken, in phones
}

// pronunciation is one pronunciation of a target.
type pronunciation struct {
	phones       []phoneme
	weight       float32
	target       int
	commonPrefix int // number of leading phones in common with the one before
}

// maxCachedIndexes is the number of vocabularies with a cached index.
const maxCachedIndexes = 8

// targetCache caches the search indexes of vocabularies: the calls of an organisation use the same one again and
// again. It is safe for concurrent use; the zero value is ready.
type targetCache struct {
	mu     sync.Mutex // guards cached
	cached []cachedIndex
	seed   maphash.Seed
}

type cachedIndex struct {
	key uint64
	*targetIndex
}

// indexOf returns the search index of the terms of a clip; nil if the clip is not in English.
func (h *targetCache) indexOf(c transcript.Clip) *targetIndex {
	terms := c.Terms
	if len(terms) == 0 || !isEnglish(c.Language) {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cached == nil {
		h.seed = maphash.MakeSeed()
	}
	key := h.key(terms)
	if i := slices.IndexFunc(h.cached, func(x cachedIndex) bool { return x.key == key }); i >= 0 {
		found := h.cached[i]
		h.cached = append(slices.Delete(h.cached, i, i+1), found)
		return found.targetIndex
	}
	made := newTargetIndex(terms)
	if len(h.cached) == maxCachedIndexes {
		h.cached = slices.Delete(h.cached, 0, 1)
	}
	h.cached = append(h.cached, cachedIndex{key, made})
	return made
}

func (h *targetCache) key(terms []transcript.Term) uint64 {
	var m maphash.Hash
	m.SetSeed(h.seed)
	for _, t := range terms {
		_, _ = m.WriteString(t.Text)
		for _, s := range t.SoundsLike {
			_ = m.WriteByte(1)
			_, _ = m.WriteString(s)
		}
		flags := byte(2)
		if t.UserDefined {
			flags |= 4
		}
		if t.Person {
			flags |= 8
		}
		_ = m.WriteByte(flags)
	}
	return m.Sum64()
}

// isEnglish reports whether a language is English or not set.
func isEnglish(language string) bool {
	return transcript.BaseLanguage(language) == "en"
}

// newTargetIndex determines the pronunciations of terms and indexes them.
func newTargetIndex(terms []transcript.Term) *targetIndex {
	all := &targetIndex{exact: map[string][]int{}}
	for i, t := range terms {
		words := termWords(t)
		if len(words) == 0 {
			continue
		}
		if len(t.SoundsLike) > 0 {
			all.add(target{words: strings.Fields(t.Text), pronunciations: phonesOfHints(t.SoundsLike), term: i, wordIndex: wholeTerm,
				wordCount: len(words)})
			continue
		}
		ways := make([][][]phoneme, len(words))
		together := [][]phoneme{nil}
		for k, w := range words {
			ways[k] = pronunciationsOf(w)
			together[0] = append(together[0], ways[k][0]...)
			if len(words) > 1 && (t.Person || !nlp.InLexicon(w)) && nlp.EnglishProbability(w) < commonWordProb {
				all.add(target{words: []string{w}, pronunciations: ways[k], term: i, wordIndex: k, wordCount: len(words)})
			}
		}
		if len(words) == 1 {
			together = ways[0]
		}
		if len(words) > 1 || t.UserDefined || nlp.EnglishProbability(words[0]) < commonWordProb {
			all.add(target{words: words, pronunciations: together, term: i, wordIndex: wholeTerm, wordCount: len(words)})
		}
	}
	all.index()
	return all
}

// index builds the lookup by letters and by phones.
func (all *targetIndex) index() {
	for i, t := range all.list {
		all.exact[t.plain] = append(all.exact[t.plain], i)
		for _, way := range t.pronunciations {
			all.pronunciations = append(all.pronunciations, pronunciation{phones: way, weight: phoneWeightSum(way), target: i})
			all.longest = max(all.longest, len(way))
		}
	}
	slices.SortStableFunc(all.pronunciations, func(a, b pronunciation) int { return slices.Compare(a.phones, b.phones) })
	for i := 1; i < len(all.pronunciations); i++ {
		a, b := all.pronunciations[i-1].phones, all.pronunciations[i].phones
		for k := 0; k < min(len(a), len(b)) && a[k] == b[k]; k++ {
			all.pronunciations[i].commonPrefix++
		}
	}
}

// add adds a target, unless it has no pronunciation of two phones or more.
func (all *targetIndex) add(t target) {
	t.pronunciations = slices.DeleteFunc(t.pronunciations, func(w []phoneme) bool { return len(w) < 2 })
	if len(t.pronunciations) == 0 {
		return
	}
	t.plain = strings.Join(plainWords(folded(strings.Join(t.words, " "))), "")
	t.weight = phoneWeightSum(t.pronunciations[0])
	all.list = append(all.list, t)
}

// termWords returns the words of a term that are spoken.
func termWords(t transcript.Term) (words []string) {
	for _, w := range strings.Fields(t.Text) {
		if w = strings.Trim(w, `.,;:!?"()`); w != "" && (t.UserDefined || !legalForms[strings.ToLower(w)]) {
			words = append(words, w)
		}
	}
	return words
}

// phonesOfHints returns the phones of the pronunciations that a user entered for a term.
func phonesOfHints(like []string) (ways [][]phoneme) {
	for _, l := range like {
		phones, ok := parsePhones(l)
		if !ok {
			phones = nil
			for _, w := range plainWords(folded(l)) {
				phones = append(phones, NewLetterToSound().pronounce(w)...)
			}
		}
		ways = append(ways, phones)
	}
	return ways
}

// pronunciationsOf returns the phones of a word by its spelling, the most likely first.
func pronunciationsOf(word string) [][]phoneme {
	ways := [][]phoneme{NewLetterToSound().pronounceWritten(word)}
	plain := strings.ToLower(folded(word))
	if n := len(plain); n > 3 && plain[n-1] == 'e' && !strings.ContainsAny(plain[n-2:n-1], "aeiou") {
		ways = append(ways, append(slices.Clone(ways[0]), phoneOf["AH"])) // names from elsewhere: Ilse, Heike
	}
	return ways
}
