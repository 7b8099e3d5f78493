package memory

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"
)

// Usual constants of BM25.
const (
	bm25K = 1.2
	bm25B = 0.75
)

// Limits the cost of a query word: the posting list of a word that occurs in more than one of eight passages is
// dropped. Such words are not selective; they still count in the score of a candidate.
const (
	commonFrom  = 4096
	commonShare = 8
)

// invertedIndex lists, for each word, the passages that contain it.
type invertedIndex struct {
	postings    map[Term]*postingList
	terms       []Term    // words by id
	lengths     []uint16  // words per passage
	total       int       // words of all passages
	scoreboards sync.Pool // scoreboards
}

// postingList holds passages in ascending order, as varints of (difference to the one before) × 4 + (count - 1, at
// most 3).
type postingList struct {
	id     uint32 // id of the word: lower for words that were added earlier
	data   []byte
	last   uint32
	count  int // passages
	common bool
}

func newInvertedIndex() *invertedIndex { return &invertedIndex{postings: map[Term]*postingList{}} }

// add appends the next passage.
func (w *invertedIndex) add(terms []termCount) {
	at := uint32(len(w.lengths))
	n := 0
	for _, t := range terms {
		n += int(t.count)
		l := w.postings[t.term]
		if l == nil {
			l = &postingList{id: uint32(len(w.terms))}
			w.postings[t.term], w.terms = l, append(w.terms, t.term)
		}
		l.add(at, t.count, int(at)+1)
	}
	w.lengths = append(w.lengths, uint16(min(n, math.MaxUint16)))
	w.total += n
}

func (l *postingList) add(at uint32, count uint8, passages int) {
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

// rarity returns BM25's idf of a word that occurs in with of n passages.
func rarity(with, n int) float64 {
	return math.Log(1 + (float64(n-with)+0.5)/(float64(with)+0.5))
}

// idf returns the rarity of a word.
func (w *invertedIndex) idf(t Term) float64 {
	with := 0
	if l := w.postings[t]; l != nil {
		with = l.count
	}
	return rarity(with, len(w.lengths))
}

// average returns the mean length of a passage in words.
func (w *invertedIndex) average() float64 { return float64(w.total) / float64(max(len(w.lengths), 1)) }

// bm25 returns the score of a word that occurs count times in a passage of the given length.
func bm25(idf, count, length, average float64) float64 {
	return idf * count * (bm25K + 1) / (count + bm25K*(1-bm25B+bm25B*length/max(average, 1)))
}

// queryTerm is a word of a query that has a posting list.
type queryTerm struct {
	*postingList
	idf      float64
	maxScore float64 // maximum contribution to a score
}

// queryTerms returns the words of a query that have a posting list, rarest first, and the maximum of their total
// score.
func (w *invertedIndex) queryTerms(query []Term) (all []queryTerm, most float64) {
	for _, t := range query {
		if l := w.postings[t]; l != nil && !l.common {
			idf := w.idf(t)
			all = append(all, queryTerm{l, idf, bm25(idf, 4, 0, 1)})
			most += all[len(all)-1].maxScore
		}
	}
	slices.SortStableFunc(all, func(a, b queryTerm) int { return a.count - b.count })
	return all, most
}

// pruneFrom is the length of a posting list from which it is worth checking whether the word can still add
// candidates.
const pruneFrom = 4096

// search returns the k best of the allowed passages that contain a listed word of the query. Rare words are processed
// first: once the best passages score more than the remaining words can contribute, those are counted only in
// passages with a rarer word.
func (w *invertedIndex) search(query []Term, allowed func(at int) bool, k int) []hit {
	s := w.takeScoreboard()
	defer w.scoreboards.Put(s)
	s.prepare(w.average())
	words, rest := w.queryTerms(query)
	closed := false
	for _, l := range words {
		if !closed && l.count > pruneFrom && len(s.scored) > k {
			closed = float64(s.best(k, allowed).lowest()) >= rest
		}
		rest -= l.maxScore
		idf := float32(l.idf)
		if closed {
			l.each(func(at uint32, count int) {
				if s.scores[at] != 0 {
					s.scores[at] += idf * s.share(count, w.lengths[at])
				}
			})
			continue
		}
		l.each(func(at uint32, count int) {
			if s.scores[at] == 0 {
				s.scored = append(s.scored, at)
			}
			s.scores[at] += idf * s.share(count, w.lengths[at])
		})
	}
	best := s.best(k, allowed)
	for _, at := range s.scored {
		s.scores[at] = 0
	}
	s.scored = s.scored[:0]
	return best.best()
}

// best returns the k best of the scored passages that are allowed.
func (s *scoreboard) best(k int, allowed func(at int) bool) *topK {
	best := newTopK(k)
	for _, at := range s.scored {
		if s.scores[at] > best.threshold && allowed(int(at)) {
			best.add(int(at), s.scores[at])
		}
	}
	return best
}

// scoreboard holds a score per passage during a query; all are 0 between queries.
type scoreboard struct {
	scores  []float32
	scored  []uint32
	average float64
	shares  [4][shareLengths]float32 // share of the idf that a word contributes, by its count minus one and the length of the passage
}

// shareLengths is the number of passage lengths for which shares are precomputed; longer ones count like the longest.
const shareLengths = 512

// prepare computes the shares for an average length of passages.
func (s *scoreboard) prepare(average float64) {
	if s.average == average {
		return
	}
	s.average = average
	for c := range s.shares {
		for n := range s.shares[c] {
			s.shares[c][n] = float32(bm25(1, float64(c+1), float64(n), average))
		}
	}
}

// share returns the contribution of a word that occurs count times, 1 to 4.
func (s *scoreboard) share(count int, length uint16) float32 {
	return s.shares[(count-1)&3][min(length, shareLengths-1)]
}

// takeScoreboard returns a scoreboard for all passages.
func (w *invertedIndex) takeScoreboard() *scoreboard {
	s, _ := w.scoreboards.Get().(*scoreboard)
	if s == nil || len(s.scores) < len(w.lengths) {
		s = &scoreboard{scores: make([]float32, len(w.lengths)+1024)}
	}
	return s
}

// each calls f for the passages of a list.
func (l *postingList) each(f func(at uint32, count int)) {
	at := uint32(0)
	for data := l.data; len(data) > 0; {
		v := uint64(data[0])
		if v < 0x80 {
			data = data[1:]
		} else {
			var n int
			v, n = binary.Uvarint(data)
			data = data[n:]
		}
		at += uint32(v >> 2)
		f(at, int(v&3)+1)
	}
}

// size returns the approximate size of the index in bytes.
func (w *invertedIndex) size() int {
	n := 2 * len(w.lengths)
	for _, l := range w.postings {
		n += cap(l.data) + 80
	}
	return n
}
