package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// wordnet is WordNet's database: words, their senses, and the relations of senses.
type wordnet struct {
	words      []string // lemmas, in the order of the files
	number     map[string]int
	senses     map[string][]int // synsets of a lemma, most frequent first for each part of speech
	rank       map[string][]int // positions of those within their part of speech
	synsets    []synset
	relations  []relation
	exceptions map[string]string // base forms of irregular words
}

type synset struct {
	words []string
	gloss string
}

// relation connects one synset to another; word and other are the related words, 0 for all.
type relation struct {
	from, to    int
	kind        string
	word, other int
}

var parts = []string{"noun", "verb", "adj", "adv"}

// readWordnet reads the database in a folder.
func readWordnet(dir string) (*wordnet, error) {
	w := &wordnet{number: map[string]int{}, senses: map[string][]int{}, rank: map[string][]int{}, exceptions: map[string]string{}}
	at := map[string]int{} // synset by part and offset
	var open []func() error
	for _, part := range parts {
		if err := eachLine(filepath.Join(dir, part+".exc"), func(f []string, _ string) error {
			if len(f) > 1 && w.exceptions[f[0]] == "" {
				w.exceptions[f[0]] = f[1]
			}
			return nil
		}); err != nil {
			return nil, err
		}
		if err := eachLine(filepath.Join(dir, "data."+part), func(f []string, gloss string) error {
			later, err := w.synset(part, f, gloss, at)
			open = append(open, later)
			return err
		}); err != nil {
			return nil, err
		}
	}
	for _, later := range open { // relations refer to synsets of other files
		if err := later(); err != nil {
			return nil, err
		}
	}
	for _, part := range parts {
		if err := eachLine(filepath.Join(dir, "index."+part),
			func(f []string, _ string) error { return w.lemma(part, f, at) }); err != nil {
			return nil, err
		}
	}
	if len(w.words) == 0 {
		return nil, fmt.Errorf("WordNet in %s has no words", dir)
	}
	return w, nil
}

// eachLine visits the lines of a file, split into fields, with the text after a bar. It skips lines of the licence,
// which begin with two blanks.
func eachLine(file string, visit func(fields []string, gloss string) error) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read WordNet: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if strings.HasPrefix(lines.Text(), "  ") {
			continue
		}
		data, gloss, _ := strings.Cut(lines.Text(), "|")
		if err := visit(strings.Fields(data), strings.TrimSpace(gloss)); err != nil {
			return fmt.Errorf("read WordNet: %s:%d: %w", file, n, err)
		}
	}
	return lines.Err()
}

var (
	errShort = fmt.Errorf("the line is too short")
	marker   = regexp.MustCompile(`\(.*?\)`)
	partOf   = map[byte]string{'n': "noun", 'v': "verb", 'a': "adj", 's': "adj", 'r': "adv"}
)

// synset parses a synset, and returns a function that resolves its relations once all synsets are known.
func (w *wordnet) synset(part string, f []string, gloss string, at map[string]int) (func() error, error) {
	if len(f) < 6 {
		return nil, errShort
	}
	n, err := strconv.ParseInt(f[3], 16, 32)
	if err != nil || len(f) < 5+2*int(n) {
		return nil, errShort
	}
	s := synset{gloss: gloss}
	for i := range int(n) {
		s.words = append(s.words, strings.ToLower(marker.ReplaceAllString(f[4+2*i], "")))
	}
	id := len(w.synsets)
	at[part+f[0]] = id
	w.synsets = append(w.synsets, s)
	rest := f[5+2*int(n):]
	return func() error {
		for ; len(rest) >= 4 && len(rest[3]) == 4 && partOf[rest[2][0]] != ""; rest = rest[4:] {
			ends, err := strconv.ParseUint(rest[3], 16, 16)
			to, known := at[partOf[rest[2][0]]+rest[1]]
			if err != nil || !known {
				continue
			}
			w.relations = append(w.relations, relation{id, to, rest[0], int(ends >> 8), int(ends & 255)})
		}
		return nil
	}, nil
}

// lemma parses a word of an index and its senses.
func (w *wordnet) lemma(part string, f []string, at map[string]int) error {
	if len(f) < 4 {
		return errShort
	}
	senses, err1 := strconv.Atoi(f[2])
	kinds, err2 := strconv.Atoi(f[3])
	if err1 != nil || err2 != nil || len(f) < 6+kinds+senses {
		return errShort
	}
	if _, known := w.number[f[0]]; !known {
		w.number[f[0]] = len(w.words)
		w.words = append(w.words, f[0])
	}
	for place, offset := range f[6+kinds : 6+kinds+senses] {
		if id, known := at[part+offset]; known {
			w.senses[f[0]] = append(w.senses[f[0]], id)
			w.rank[f[0]] = append(w.rank[f[0]], place)
		}
	}
	return nil
}

// endings are suffixes of inflected words, and their replacements.
var endings = [][2]string{{"ies", "y"}, {"sses", "ss"}, {"ves", "f"}, {"es", "e"}, {"es", ""}, {"s", ""}, {"ied", "y"}, {"ed", "e"},
	{"ed", ""}, {"ing", "e"}, {"ing", ""}, {"er", ""}, {"est", ""}, {"ly", ""}}

// base returns the base form of a word; an unknown word is returned unchanged.
func (w *wordnet) base(word string) string {
	if b := w.exceptions[word]; b != "" {
		return b
	}
	if _, known := w.number[word]; known {
		return word
	}
	for _, e := range endings {
		stem, ok := strings.CutSuffix(word, e[0])
		if !ok || len(stem) < 2 {
			continue
		}
		c := stem + e[1]
		if _, known := w.number[c]; known {
			return c
		}
		if n := len(c); n > 3 && c[n-1] == c[n-2] {
			if _, known := w.number[c[:n-1]]; known {
				return c[:n-1]
			}
		}
	}
	return word
}

// glossStop are words of glosses without a meaning of their own.
var glossStop = wordSet(`a an the and or but if of to in on at by for with from as is are was were be been being am do does did doing have
	has had having i you he she it we they me him her us them my your his its our their this that these those there here what which who whom
	when where why how not no nor so than too very can will just would could should may might must shall about into over under again then
	once all any both each few more most other some such only own same s t d ll m o re ve y also especially usually etc used use using one
	something someone`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

var glossWord = regexp.MustCompile(`[a-z0-9]+(?:'[a-z]+)?`)

// tokens returns the base forms of the meaningful words of a text.
func (w *wordnet) tokens(text string) (out []string) {
	for _, t := range glossWord.FindAllString(strings.ToLower(text), -1) {
		if len(t) > 1 && !glossStop[t] {
			out = append(out, w.base(t))
		}
	}
	return out
}
