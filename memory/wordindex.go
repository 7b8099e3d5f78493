package memory

import (
	"encoding/binary"
	"math"
	"sync"
)

// BM25's usual constants.
const (
	bm25K = 1.2
	bm25B = 0.75
)

// commonest bounds what a query word can cost: the passages of a word found in more than one of eight passages are
// not listed any more. Such words tell little; they still count where a passage is scored.
const (
	commonFrom  = 4096
	commonShare = 8
)

// wordIndex lists, for each word, the passages that hold it.
type wordIndex struct {
	lists   map[Term]*wordList
	lengths []uint16  // words per passage
	total   int       // words of all passages
	spare   sync.Pool // scoreboards
}

// A wordList holds passages in rising order, as varints of (distance to the one before) × 4 + (count - 1, at most 3).
type wordList struct {
	data   []byte
	last   uint32
	count  int // passages
	common bool
}

func newWordIndex() *wordIndex { return &wordIndex{lists: map[Term]*wordList{}} }

// add appends the next passage.
func (w *wordIndex) add(terms []termCount) {
	at := uint32(len(w.lengths))
	n := 0
	for _, t := range terms {
		n += int(t.count)
		l := w.lists[t.term]
		if l == nil {
			l = &wordList{}
			w.lists[t.term] = l
		}
		l.add(at, t.count, int(at)+1)
	}
	w.lengths = append(w.lengths, uint16(min(n, math.MaxUint16)))
	w.total += n
}

func (l *wordList) add(at uint32, count uint8, passages int) {
	l.count++
	if l.common {
		return
	}
	if l.count > commonFrom && l.count > passages/commonShare {
		l.common, l.data = true, nil
		return
	}
	l.data = binary.AppendUvarint(l.data, uint64(at-l.last)<<2|uint64(min(count, 4)-1))
	l.last = at
}

// rarity is BM25's idf of a word among n passages.
func rarity(with, n int) float64 {
	return math.Log(1 + (float64(n-with)+0.5)/(float64(with)+0.5))
}

// idf is the rarity of a word.
func (w *wordIndex) idf(t Term) float64 {
	with := 0
	if l := w.lists[t]; l != nil {
		with = l.count
	}
	return rarity(with, len(w.lengths))
}

// average is the mean length of a passage in words.
func (w *wordIndex) average() float64 { return float64(w.total) / float64(max(len(w.lengths), 1)) }

// bm25 weighs a word that occurs count times in a passage of the given length.
func bm25(idf, count, length, average float64) float64 {
	return idf * count * (bm25K + 1) / (count + bm25K*(1-bm25B+bm25B*length/max(average, 1)))
}

// search scores the passages that hold a listed word of the query and are allowed, and returns the k best.
func (w *wordIndex) search(query []Term, allowed func(at int) bool, k int) []hit {
	s := w.scores()
	defer w.spare.Put(s)
	average := w.average()
	for _, t := range query {
		l := w.lists[t]
		if l == nil || l.common {
			continue
		}
		idf := w.idf(t)
		l.each(func(at uint32, count int) {
			if s.of[at] == 0 {
				s.touched = append(s.touched, at)
			}
			s.of[at] += float32(bm25(idf, float64(count), float64(w.lengths[at]), average))
		})
	}
	best := newTop(k)
	for _, at := range s.touched {
		if s.of[at] > best.bar && allowed(int(at)) {
			best.add(int(at), s.of[at])
		}
		s.of[at] = 0
	}
	s.touched = s.touched[:0]
	return best.best()
}

// scoreboard holds a score per passage while a query runs; all are 0 between queries.
type scoreboard struct {
	of      []float32
	touched []uint32
}

// scores gives a scoreboard for all passages.
func (w *wordIndex) scores() *scoreboard {
	s, _ := w.spare.Get().(*scoreboard)
	if s == nil || len(s.of) < len(w.lengths) {
		s = &scoreboard{of: make([]float32, len(w.lengths)+1024)}
	}
	return s
}

// each visits the passages of a list.
func (l *wordList) each(f func(at uint32, count int)) {
	at := uint32(0)
	for data := l.data; len(data) > 0; {
		v, n := binary.Uvarint(data)
		data = data[n:]
		at += uint32(v >> 2)
		f(at, int(v&3)+1)
	}
}

// size is roughly what the index takes in memory, in bytes.
func (w *wordIndex) size() int {
	n := 2 * len(w.lengths)
	for _, l := range w.lists {
		n += cap(l.data) + 80
	}
	return n
}
