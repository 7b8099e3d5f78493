package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"

	"soniq/internal/intelligence/engine/nlp"
)

// embeddingSources has the inputs and sizes of the builtin embedding.
type embeddingSources struct {
	wordnet, model string
	words, dims    int
}

// Sizes of the two halves of a word's vector, and the weight of the second.
const (
	senseDims             = 256
	pairDims              = 200
	pairWeight            = 0.8
	contextWords          = 3000 // number of context words: the most frequent
	halfWeightProbability = 3e-4 // words with this probability have weight 1/2
	unknownProbability    = 1e-6 // probability of a word that is not in the language model
)

// build reads the sources, computes the embedding, and returns the file.
func (s embeddingSources) build() ([]byte, error) {
	w, err := readWordnet(s.wordnet)
	if err != nil {
		return nil, err
	}
	l, err := readLanguage(s.model)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "%d lemmas, %d synsets, %d relations; %d words, %d pairs\n", len(w.words), len(w.synsets), len(w.relations),
		len(l.words), len(l.pairs))
	e := concatenated(w.vectors(), l.vectors(), s.chosen(w, l))
	b := e.reduced(s.dims).bytes(w, l)
	if _, err := nlp.ReadWordEmbedding(string(b)); err != nil {
		return nil, err
	}
	return b, nil
}

// embedding has a vector per word.
type embedding struct {
	words  []string
	number map[string]int
	dense
}

func newEmbedding(words []string, d dense) embedding {
	e := embedding{words, map[string]int{}, d}
	for i, w := range words {
		e.number[w] = i
	}
	return e
}

var (
	lemmaPattern = regexp.MustCompile(`^[a-z][a-z0-9'-]*$`)
	wordPattern  = regexp.MustCompile(`^[a-z][a-z'-]*$`)
)

// vectors returns the vectors of WordNet's words: words are near if their random walks over senses, relations and
// glosses meet.
func (w *wordnet) vectors() embedding {
	steps := w.graph()
	steps.normalizeRows()
	var words []string
	var rows []int
	for i, word := range w.words {
		if lemmaPattern.MatchString(word) {
			words, rows = append(words, word), append(rows, i)
		}
	}
	near := steps.walks(rows).positivePMI()
	fmt.Fprintf(os.Stderr, "walks of %d words: %d places\n", len(words), len(near.col))
	e := newEmbedding(words, near.reduced(senseDims))
	e.removeCommon(1)
	return e
}

// vectors returns the vectors of the language model's words: words are near if they occur before and after the same
// words.
func (l *language) vectors() embedding {
	context := map[int32]int32{}
	for _, i := range l.frequent(contextWords) {
		context[int32(i)] = int32(len(context))
	}
	var all []triple
	for _, p := range l.pairs {
		if p.lift <= 0 {
			continue
		}
		if c, ok := context[p.word]; ok { // it occurs after the word
			all = append(all, triple{p.before, c, p.lift})
		}
		if c, ok := context[p.before]; ok { // here it occurs before it
			all = append(all, triple{p.word, c + int32(len(context)), p.lift})
		}
	}
	fmt.Fprintf(os.Stderr, "company of %d words: %d pairs\n", len(l.words), len(all))
	e := newEmbedding(l.words, newSparse(len(l.words), 2*len(context), all).reduced(pairDims))
	e.removeCommon(2)
	return e
}

// frequent returns the indexes of the most frequent words.
func (l *language) frequent(n int) (places []int) {
	for i, w := range l.words {
		if wordPattern.MatchString(w) {
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(a, b int) int { return compare(l.probability[b], l.probability[a]) })
	return places[:min(n, len(places))]
}

// removeCommon subtracts the mean of all vectors and their strongest directions, which all have in common, and
// normalises the vectors.
func (e *embedding) removeCommon(directions int) {
	e.unit()
	mean := make([]float32, e.width)
	for i := range e.rows() {
		addScaled(mean, e.row(i), 1/float32(e.rows()))
	}
	for i := range e.rows() {
		addScaled(e.row(i), mean, -1)
	}
	_, vectors := eigenvectors(dense{e.width, e.v[:min(20000, e.rows())*e.width]}.gram())
	for i := range e.rows() {
		for k := range min(directions, e.width) {
			along := 0.0
			for j, v := range e.row(i) {
				along += float64(v) * vectors[j][k]
			}
			for j := range e.row(i) {
				e.row(i)[j] -= float32(along * vectors[j][k])
			}
		}
	}
	e.unit()
}

func (e *embedding) unit() {
	for i := range e.rows() {
		length := 0.0
		for _, v := range e.row(i) {
			length += float64(v) * float64(v)
		}
		for j := range e.row(i) {
			e.row(i)[j] /= float32(math.Sqrt(length) + 1e-9)
		}
	}
}

// chosen returns the words to keep: the most frequent and their base forms.
func (s embeddingSources) chosen(w *wordnet, l *language) map[string]bool {
	keep := map[string]bool{}
	for _, i := range l.frequent(s.words) {
		keep[l.words[i]], keep[w.base(l.words[i])] = true, true
	}
	return keep
}

// concatenated returns the vectors of both embeddings, concatenated.
func concatenated(senses, pairs embedding, keep map[string]bool) embedding {
	var words []string
	for word := range keep {
		_, a := senses.number[word]
		_, b := pairs.number[word]
		if a || b {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	d := newDense(len(words), senses.width+pairs.width)
	for i, word := range words {
		if at, ok := senses.number[word]; ok {
			copy(d.row(i), senses.row(at))
		}
		if at, ok := pairs.number[word]; ok {
			addScaled(d.row(i)[senses.width:], pairs.row(at), pairWeight)
		}
	}
	return newEmbedding(words, d)
}

// reduced projects the vectors on their strongest directions.
func (e embedding) reduced(dims int) embedding {
	_, vectors := eigenvectors(e.gram())
	return newEmbedding(e.words, e.multiply(vectors, min(dims, e.width)))
}

// bytes returns the embedding in the format of lexsem.bin.
func (e embedding) bytes(w *wordnet, l *language) []byte {
	chance := map[string]float64{}
	for i, word := range l.words {
		chance[word] = l.probability[i]
	}
	order := make([]int, len(e.words))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(int64(hashOf(e.words[a])) - int64(hashOf(e.words[b]))) })
	order = slices.CompactFunc(order, func(a, b int) bool { return hashOf(e.words[a]) == hashOf(e.words[b]) })
	place := map[string]int{}
	for at, i := range order {
		place[e.words[i]] = at
	}
	var hashes, bases, scales, weights, vectors []byte
	for at, i := range order {
		word := e.words[i]
		base, ok := place[strings.TrimSuffix(w.base(word), "'s")]
		if !ok {
			base = at
		}
		p, ok := chance[word]
		if !ok {
			p = unknownProbability
		}
		scale := float32(1e-12)
		for _, v := range e.row(i) {
			scale = max(scale, v/127, -v/127)
		}
		hashes = binary.LittleEndian.AppendUint32(hashes, hashOf(word))
		bases = binary.LittleEndian.AppendUint16(bases, uint16(base))
		scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(scale))
		weights = binary.LittleEndian.AppendUint32(weights, math.Float32bits(float32(halfWeightProbability/(halfWeightProbability+p))))
		for _, v := range e.row(i) {
			vectors = append(vectors, byte(int8(math.Round(float64(v/scale)))))
		}
	}
	b := binary.LittleEndian.AppendUint32([]byte("lexsem2\n"), uint32(len(order)))
	b = binary.LittleEndian.AppendUint32(b, uint32(e.width))
	return slices.Concat(b, hashes, bases, scales, weights, vectors)
}

// hashOf returns the 32-bit FNV-1a hash of a word.
func hashOf(w string) uint32 {
	h := uint32(2166136261)
	for i := range len(w) {
		h = (h ^ uint32(w[i])) * 16777619
	}
	return h
}
