package nlp

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/memory"
)

// wordEmbeddingData is the builtin lexicon, little-endian: the magic "lexsem2\n", the numbers of words n and dimensions d as
// uint32, then for each word, in ascending order of hash: n uint32 FNV-1a hashes, n uint16 positions of the base
// form, n float32 scales, n float32 weights (3e-4 / (3e-4 + probability)), n × d int8 vectors. It is read in place:
// opening it costs nothing, and only the pages of words in use are loaded into memory.
//
//go:embed lexsem.bin
var wordEmbeddingData string

// WordEmbedding is the builtin embedder: static word vectors made from WordNet's relations and glosses and from the
// word pairs of an English language model. The vector of a text is the weighted sum of its words' vectors. English
// only. It is safe for concurrent use.
type WordEmbedding struct {
	words, dims                          int
	hashes, bases, scales, weights, vecs string
}

// WordEmbeddingModel is the model name stored with rows that the builtin embedder embedded.
const WordEmbeddingModel = "builtin-lexsem-256-2"

// NewWordEmbedding opens the lexicon that is embedded in the binary.
func NewWordEmbedding() *WordEmbedding {
	l, err := ReadWordEmbedding(wordEmbeddingData)
	if err != nil {
		panic(err) // the embedded file is damaged, which the tests detect
	}
	return l
}

// lexsemMagic begins a lexicon file.
const lexsemMagic = "lexsem2\n"

// ReadWordEmbedding opens a lexicon in the format of lexsem.bin, which cmd/trainmodels writes. It copies nothing.
func ReadWordEmbedding(data string) (*WordEmbedding, error) {
	if len(data) < 16 || data[:8] != lexsemMagic {
		return nil, fmt.Errorf("a lexicon of %d bytes does not begin as one", len(data))
	}
	n := int(binary.LittleEndian.Uint32([]byte(data[8:12])))
	d := int(binary.LittleEndian.Uint32([]byte(data[12:16])))
	if n > 1<<16 || d > 1<<16 || len(data) != 16+n*(14+d) {
		return nil, fmt.Errorf("a lexicon of %d words and %d dimensions has %d bytes", n, d, len(data))
	}
	rest := data[16:]
	take := func(size int) string {
		part := rest[:size]
		rest = rest[size:]
		return part
	}
	return &WordEmbedding{words: n, dims: d, hashes: take(4 * n), bases: take(2 * n), scales: take(4 * n),
		weights: take(4 * n), vecs: take(n * d)}, nil
}

// Model returns the name and the dimensions of the builtin embedding.
func (l *WordEmbedding) Model() memory.Model {
	return memory.Model{Name: WordEmbeddingModel, Dimensions: l.dims, Builtin: true}
}

// Embed returns the unit vectors of texts. It never fails. A text without a known word has the zero vector, whose
// similarity to any vector is 0.
func (l *WordEmbedding) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = l.embed(t)
	}
	return out, nil
}

func (l *WordEmbedding) embed(text string) []float32 {
	count := map[memory.Term]int{}
	for _, t := range l.Terms(text) {
		count[t]++
	}
	v := make([]float32, l.dims)
	for t, n := range count {
		at := l.find(uint32(t))
		if at < 0 {
			continue
		}
		k := float32At(l.scales, at) * float32At(l.weights, at) * float32(1+math.Log(float64(n)))
		for j, x := range l.vector(at) {
			v[j] += k * float32(x)
		}
	}
	return engine.UnitVector(v)
}

// Vector returns a word's vector and weight; nil and 1 if the lexicon does not have it.
func (l *WordEmbedding) Vector(t memory.Term) ([]int8, float32) {
	at := l.find(uint32(t))
	if at < 0 {
		return nil, 1
	}
	return l.vector(at), float32At(l.weights, at)
}

// Terms splits a text into words and returns the hashes of their base forms, without stop words. Words that are not
// in the lexicon, such as names and numbers, are kept as they are.
func (l *WordEmbedding) Terms(text string) []memory.Term {
	var out []memory.Term
	EachWord(text, func(w string) {
		if !stopWords[w] {
			out = append(out, memory.Term(l.baseForm(w)))
		}
	})
	return out
}

// baseForm returns the hash of a word's base form.
func (l *WordEmbedding) baseForm(w string) uint32 {
	w = strings.TrimSuffix(w, "'s")
	h := hashOf(w)
	if at := l.find(h); at >= 0 {
		b := l.bases[2*at:]
		return l.hash(int(b[0]) | int(b[1])<<8)
	}
	for _, r := range suffixes {
		stem, ok := strings.CutSuffix(w, r.ending)
		if !ok || len(stem) < 3 {
			continue
		}
		for _, c := range []string{stem + r.instead, undouble(stem + r.instead)} {
			if h := hashOf(c); l.find(h) >= 0 {
				return h
			}
		}
	}
	return h
}

// suffixes lists endings of inflected words that the lexicon itself does not contain.
var suffixes = []struct{ ending, instead string }{{"ies", "y"}, {"sses", "ss"}, {"ves", "f"}, {"es", "e"},
	{"es", ""}, {"s", ""}, {"ied", "y"}, {"ed", "e"}, {"ed", ""}, {"ing", "e"}, {"ing", ""}, {"er", ""}, {"est", ""}, {"ly", ""}}

// undouble removes one of two equal letters at the end: "stopp" becomes "stop".
func undouble(w string) string {
	if n := len(w); n > 3 && w[n-1] == w[n-2] {
		return w[:n-1]
	}
	return w
}

// find returns the position of a hash, or -1.
func (l *WordEmbedding) find(h uint32) int {
	at := sort.Search(l.words, func(i int) bool { return l.hash(i) >= h })
	if at < l.words && l.hash(at) == h {
		return at
	}
	return -1
}

func (l *WordEmbedding) hash(at int) uint32 {
	b := l.hashes[4*at : 4*at+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func (l *WordEmbedding) vector(at int) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.StringData(l.vecs[at*l.dims:]))), l.dims)
}

func float32At(s string, at int) float32 {
	b := s[4*at : 4*at+4]
	return math.Float32frombits(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
}

// hashOf returns the 32-bit FNV-1a hash of a word.
func hashOf(w string) uint32 {
	h := uint32(2166136261)
	for i := range len(w) {
		h = (h ^ uint32(w[i])) * 16777619
	}
	return h
}

// EachWord calls f for each word in lower case: letters and digits, with apostrophes inside.
func EachWord(text string, f func(string)) {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '\'' || r == '’' }
	for text != "" {
		from := strings.IndexFunc(text, inWord)
		if from < 0 {
			return
		}
		text = text[from:]
		to := strings.IndexFunc(text, func(r rune) bool { return !inWord(r) })
		if to < 0 {
			to = len(text)
		}
		w := strings.Trim(strings.ReplaceAll(strings.ToLower(text[:to]), "’", "'"), "'")
		if w != "" && utf8.ValidString(w) {
			f(w)
		}
		text = text[to:]
	}
}

// IsStopWord reports whether a word in lower case has no meaning of its own.
func IsStopWord(word string) bool { return stopWords[word] }

// stopWords are words without a meaning of their own.
var stopWords = engine.WordSet(`a an the and or but if of to in on at by for with from as is are was were be been being am do
does did doing have has had having i you he she it we they me him her us them my your his its our their this that
these those there here what which who whom when where why how not no nor so than too very can will just would could
should may might must shall about into over under again then once all any both each few more most other some such
only own same s t d ll m re ve don't i'm it's i've i'll i'd you're you've you'll we're we've we'll that's there's
what's let's didn't doesn't isn't wasn't aren't can't couldn't won't wouldn't okay ok hello hi um uh yes`)

// Similarity returns the cosine similarity of a text to each of the others, from 0 to 1.
func (l *WordEmbedding) Similarity(text string, others []string) []float64 {
	all := make([]float64, len(others))
	v := l.embed(text)
	for i, o := range others {
		sum := 0.0
		for k, x := range l.embed(o) {
			sum += float64(x) * float64(v[k])
		}
		all[i] = min(max(sum, 0), 1)
	}
	return all
}
