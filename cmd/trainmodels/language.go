package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"os"
	"strings"
)

// language has the words and word pairs of a language model. Words are in the order of the model.
type language struct {
	words       []string
	probability []float64 // of each word
	pairs       []wordPair
}

// wordPair is a word after another, with the logarithm of how much more probable it is there than elsewhere.
type wordPair struct {
	before, word int32
	lift         float32
}

// Binary format of language models of CMU Sphinx: a trie from the last word of an n-gram backwards, with bit-packed
// entries.
const (
	trieMagic    = "Trie Language Model"
	tableSize    = 4 << 16 // of one table of values, with a 16-bit index
	unigramBytes = 12      // bytes: value, back-off value, first pair
	logBase      = 1.0001
)

// readLanguage reads a language model.
func readLanguage(file string) (*language, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read language model: %w", err)
	}
	l, err := parseLanguage(b)
	if err != nil {
		return nil, fmt.Errorf("read language model %s: %w", file, err)
	}
	return l, nil
}

func parseLanguage(b []byte) (*language, error) {
	head := len(trieMagic)
	if len(b) < head+17 || string(b[:head]) != trieMagic || b[head] != 3 {
		return nil, fmt.Errorf("it is no trie of three words")
	}
	count := func(order int) int { return int(binary.LittleEndian.Uint32(b[head+1+4*order:])) }
	words, pairs := count(0), count(1)
	table := head + 1 + 3*4 + 4
	grams := table + 3*tableSize
	entries := grams + (words+1)*unigramBytes
	next := bits.Len(uint(count(2))) // of the first triple of a pair
	trie := packedEntries{b: b, at: entries, word: bits.Len(uint(words)), size: bits.Len(uint(words)) + 32 + next}
	triples := ((1+pairs)*trie.size+7)/8 + 8
	names := entries + triples + ((1+count(2))*(bits.Len(uint(words))+16)+7)/8 + 8
	if words < 1 || words > 1<<22 || pairs > 1<<26 || names+4 > len(b) {
		return nil, fmt.Errorf("%d words and %d pairs do not fit its %d bytes", words, pairs, len(b))
	}
	l := &language{probability: make([]float64, words), pairs: make([]wordPair, 0, pairs)}
	for _, w := range bytes.Split(bytes.TrimSuffix(b[names+4:], []byte{0}), []byte{0}) {
		l.words = append(l.words, strings.Clone(string(w)))
	}
	if len(l.words) != words {
		return nil, fmt.Errorf("it has %d words and names %d", words, len(l.words))
	}
	value := func(at int) float64 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[at:]))) * math.Log(logBase)
	}
	first := func(w int) int { return int(binary.LittleEndian.Uint32(b[grams+w*unigramBytes+8:])) }
	for w := range words {
		own := value(grams + w*unigramBytes)
		l.probability[w] = math.Exp(own)
		for i := first(w); i < min(first(w+1), pairs); i++ {
			before, bin := trie.entry(i)
			l.pairs = append(l.pairs, wordPair{int32(before), int32(w), float32(value(table+4*bin) - own)})
		}
	}
	return l, nil
}

// packedEntries is an array of bit-packed entries: a word, 16 bits each for value and back-off value, and the index
// of the first triple.
type packedEntries struct {
	b              []byte
	at, word, size int
}

// entry returns the word of an entry and the index of its value in the table.
func (p *packedEntries) entry(i int) (word, value int) {
	at := i * p.size
	take := func(offset, width int) int {
		return int(binary.LittleEndian.Uint64(p.b[p.at+offset/8:])>>(offset%8)) & (1<<width - 1)
	}
	return take(at, p.word), take(at+p.word+16, 16)
}
