package engine

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"soniq/internal/intelligence/transcript"
)

// A target is a word of a term, or all its words, that may have been said.
type target struct {
	words  []string    // as they are written
	plain  string      // its letters, small, without spaces
	ways   [][]phoneme // to say it
	weight float32     // of the first way
	term   int         // of the vocabulary
	part   int         // which of its words it is; wholeTerm for all of them
	of     int         // how many words the term has
}

// wholeTerm stands for all words of a term.
const wholeTerm = -1

// targets are what the terms of a vocabulary are looked for as; nil looks for nothing.
type targets struct {
	list    []target
	exact   map[string][]int // by their letters
	spoken  []spokenWay      // those that begin alike next to each other
	longest int              // of spoken, in phones
}

// A spokenWay is a way to say a target.
type spokenWay struct {
	phones []phoneme
	weight float32
	target int
	shared int // phones that the one before begins with too
}

// heldTargets are how many vocabularies are kept at hand.
const heldTargets = 8

// termTargets keeps what vocabularies are looked for as: the calls of an organisation ask for the same again and again. It is safe for concurrent
// use; the zero value is ready.
type termTargets struct {
	mu   sync.Mutex // guards held
	held []heldTarget
	seed maphash.Seed
}

type heldTarget struct {
	key uint64
	*targets
}

// of gives the targets of the terms of a clip; none where it is not in English.
func (h *termTargets) of(c transcript.Clip) *targets {
	terms := c.Terms
	if len(terms) == 0 || !english(c.Language) {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.seed = maphash.MakeSeed()
	}
	key := h.key(terms)
	if i := slices.IndexFunc(h.held, func(x heldTarget) bool { return x.key == key }); i >= 0 {
		found := h.held[i]
		h.held = append(slices.Delete(h.held, i, i+1), found)
		return found.targets
	}
	made := targetsOf(terms)
	if len(h.held) == heldTargets {
		h.held = slices.Delete(h.held, 0, 1)
	}
	h.held = append(h.held, heldTarget{key, made})
	return made
}

func (h *termTargets) key(terms []transcript.Term) uint64 {
	var m maphash.Hash
	m.SetSeed(h.seed)
	for _, t := range terms {
		_, _ = m.WriteString(t.Text)
		for _, s := range t.SoundsLike {
			_ = m.WriteByte(1)
			_, _ = m.WriteString(s)
		}
		flags := byte(2)
		if t.Chosen {
			flags |= 4
		}
		if t.Person {
			flags |= 8
		}
		_ = m.WriteByte(flags)
	}
	return m.Sum64()
}

// english tells whether a language is English, or not known.
func english(language string) bool {
	return language == "" || strings.HasPrefix(strings.ToLower(language), "en")
}

// targetsOf finds out how terms are said.
func targetsOf(terms []transcript.Term) *targets {
	all := &targets{exact: map[string][]int{}}
	for i, t := range terms {
		words := termWords(t)
		if len(words) == 0 {
			continue
		}
		if len(t.SoundsLike) > 0 {
			all.add(target{words: strings.Fields(t.Text), ways: waysLike(t.SoundsLike), term: i, part: wholeTerm, of: len(words)})
			continue
		}
		ways := make([][][]phoneme, len(words))
		together := [][]phoneme{nil}
		for k, w := range words {
			ways[k] = waysToPronounce(w)
			together[0] = append(together[0], ways[k][0]...)
			if len(words) > 1 && (t.Person || !inLexicon(w)) && englishChance(w) < rareWord {
				all.add(target{words: []string{w}, ways: ways[k], term: i, part: k, of: len(words)})
			}
		}
		if len(words) == 1 {
			together = ways[0]
		}
		if len(words) > 1 || t.Chosen || englishChance(words[0]) < rareWord {
			all.add(target{words: words, ways: together, term: i, part: wholeTerm, of: len(words)})
		}
	}
	all.index()
	return all
}

// index makes what targets are found by.
func (all *targets) index() {
	for i, t := range all.list {
		all.exact[t.plain] = append(all.exact[t.plain], i)
		for _, way := range t.ways {
			all.spoken = append(all.spoken, spokenWay{phones: way, weight: soundWeight(way), target: i})
			all.longest = max(all.longest, len(way))
		}
	}
	slices.SortStableFunc(all.spoken, func(a, b spokenWay) int { return slices.Compare(a.phones, b.phones) })
	for i := 1; i < len(all.spoken); i++ {
		a, b := all.spoken[i-1].phones, all.spoken[i].phones
		for k := 0; k < min(len(a), len(b)) && a[k] == b[k]; k++ {
			all.spoken[i].shared++
		}
	}
}

// add takes a target unless nobody knows how it is said.
func (all *targets) add(t target) {
	t.ways = slices.DeleteFunc(t.ways, func(w []phoneme) bool { return len(w) < 2 })
	if len(t.ways) == 0 {
		return
	}
	t.plain = strings.Join(plainWords(folded(strings.Join(t.words, " "))), "")
	t.weight = soundWeight(t.ways[0])
	all.list = append(all.list, t)
}

// termWords are the words of a term that are said.
func termWords(t transcript.Term) (words []string) {
	for _, w := range strings.Fields(t.Text) {
		if w = strings.Trim(w, `.,;:!?"()`); w != "" && (t.Chosen || !legalForms[strings.ToLower(w)]) {
			words = append(words, w)
		}
	}
	return words
}

// waysLike are the phones of ways to say something that somebody wrote down.
func waysLike(like []string) (ways [][]phoneme) {
	for _, l := range like {
		phones, ok := phonesIn(l)
		if !ok {
			phones = nil
			for _, w := range plainWords(folded(l)) {
				phones = append(phones, NewSounding().say(w)...)
			}
		}
		ways = append(ways, phones)
	}
	return ways
}

// waysToPronounce are the phones of a word as it is written, most likely first.
func waysToPronounce(word string) [][]phoneme {
	ways := [][]phoneme{NewSounding().sayWritten(word)}
	plain := strings.ToLower(folded(word))
	if n := len(plain); n > 3 && plain[n-1] == 'e' && !strings.ContainsAny(plain[n-2:n-1], "aeiou") {
		ways = append(ways, append(slices.Clone(ways[0]), phoneOf["AH"])) // names from elsewhere: Ilse, Heike
	}
	return ways
}

// lexicon is the builtin one, for how often words are used.
var lexicon = sync.OnceValue(NewLexsem)

// englishChance is how often a word is said among others in English, about; 0 where the lexicon does not have it.
func englishChance(word string) float64 {
	l := lexicon()
	w := strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(word), "’", "'"), "'s")
	if stopWords[w] {
		return 1e-2
	}
	at := l.find(hashOf(w))
	if at < 0 {
		at = l.find(l.base(w))
	}
	if at < 0 {
		return 0
	}
	weight := float64(float32At(l.weights, at))
	return max(3e-4*(1/weight-1), 1e-8)
}

func inLexicon(word string) bool { return englishChance(word) > 0 }
