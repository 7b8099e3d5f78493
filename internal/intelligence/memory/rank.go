package memory

import (
	"math"
	"sort"
)

// Modes of a search.
const (
	Hybrid   = "hybrid"
	Semantic = "semantic"
	Keyword  = "keyword"
)

// question is a query prepared for ranking.
type question struct {
	text    string
	terms   []Term
	vector  []float32 // nil if there is no embedding
	model   Model
	mode    string
	lexicon Lexicon
	similar map[Term]similarTerm // words of passages that are similar to words of the query
	rarities
	weights        weights
	wordSimilarity map[Term][]float64 // similarity of passage words to the query's words, cached while ranking
}

// weights are the sums over the query's words by which features are divided.
type weights struct{ keyword, meaning, rare float64 }

// features compare a passage with a query: four numbers, each between 0 and about 1.
type features struct {
	keyword float64 // share of the best possible BM25
	whole   float64 // cosine between query and passage
	word    float64 // similarity of each word of the query to the nearest word of the passage
	rare    float64 // the same, with more weight for words that are rare in the organisation
}

// ranked is a passage with its score.
type ranked struct {
	key     int64
	score   float64
	matched string
	features
}

// Weights of the builtin embedding's ranking. They were chosen on the plateau of nDCG@10 over the evaluation set,
// where they do better than mixing z-scores. Because they do not depend on the other candidates, scores of different
// queries are comparable.
const (
	mixKeyword = 0.2
	mixWhole   = 1.0
	mixWord    = 0.5
	mixRare    = 0.5
)

// Scores are calibrated on the evaluation set: a relevant passage has 0.7 in the median. The best passage for a query
// without an answer has 0.1, and less than 0.4 in nine of ten cases.
const (
	scoreMiddle = 0.90
	scoreSlope  = 0.14
)

// rank scores and sorts passages, best first.
func (q *question) rank(rows []row) []ranked {
	q.prepare()
	out := make([]ranked, len(rows))
	for i := range rows {
		out[i] = ranked{key: rows[i].key, features: q.compare(&rows[i])}
	}
	switch {
	case q.mode == Keyword || len(q.vector) == 0:
		score(out, func(f features) float64 { return f.keyword })
	case q.model.Builtin && q.mode == Semantic:
		score(out, func(f features) float64 { return calibratedScore(f.whole + (f.word+f.rare)/2) })
	case q.model.Builtin:
		score(out, func(f features) float64 {
			return calibratedScore(mixKeyword*f.keyword + mixWhole*f.whole + mixWord*f.word + mixRare*f.rare)
		})
	case q.mode == Semantic:
		score(out, func(f features) float64 { return f.whole })
	default:
		fuseRanks(out)
		scaleByDistinctness(out)
	}
	for i := range out {
		out[i].matched = matchedBy(out[i].features)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].score > out[j].score })
	return out
}

func score(all []ranked, f func(features) float64) {
	for i := range all {
		all[i].score = min(max(f(all[i].features), 0), 1)
	}
}

// calibratedScore converts the weighted sum to a score between 0 and 1.
func calibratedScore(mix float64) float64 { return 1 / (1 + math.Exp((scoreMiddle-mix)/scoreSlope)) }

// rrfConstant is the constant of reciprocal rank fusion.
const rrfConstant = 60

// fuseRanks merges the orders by words and by meaning, because scores of another embedding cannot be mixed with ours.
// The first in both orders gets 1.
func fuseRanks(all []ranked) {
	for _, by := range []func(features) float64{
		func(f features) float64 { return f.keyword }, func(f features) float64 { return f.whole }} {
		order := make([]int, len(all))
		for i := range order {
			order[i] = i
		}
		sort.SliceStable(order, func(a, b int) bool { return by(all[order[a]].features) > by(all[order[b]].features) })
		for place, i := range order {
			if by(all[i].features) > 0 {
				all[i].score += (rrfConstant + 1) / 2.0 / float64(rrfConstant+1+place)
			}
		}
	}
}

// minForTypical is the number of passages needed to determine their typical similarity.
const minForTypical = 8

// scaleByDistinctness lowers fused scores by how much a passage differs, by its words or from the typical similarity.
// By rank alone, the best of unrelated passages would look like an answer. The typical similarity differs from model
// to model.
func scaleByDistinctness(all []ranked) {
	usual := 0.0
	for _, r := range all {
		usual += r.whole / float64(len(all))
	}
	if len(all) < minForTypical {
		usual = 0
	}
	for i, r := range all {
		stands := max(r.keyword, (r.whole-usual)/max(1-usual, 0.05), 0)
		all[i].score *= min(1, 2*stands)
	}
}

// semanticMatchFrom is the similarity from which a passage counts as found by meaning.
const semanticMatchFrom = 0.45

// matchedBy returns whether a passage was found by words, meaning or both.
func matchedBy(f features) string {
	switch {
	case f.keyword > 0 && f.whole >= semanticMatchFrom:
		return "both"
	case f.keyword > 0:
		return "keyword"
	}
	return "semantic"
}

// prepare computes the weights of the query's words.
func (q *question) prepare() {
	q.weights, q.wordSimilarity = weights{}, map[Term][]float64{}
	for _, t := range q.terms {
		_, w := q.lexicon.Vector(t)
		q.weights.keyword += q.idf[t] * (bm25K + 1)
		q.weights.meaning += float64(w)
		q.weights.rare += float64(w) * q.idf[t]
	}
}

// compare computes the features of a passage.
func (q *question) compare(r *row) features {
	var f features
	best, keyword := make([]float64, len(q.terms)), make([]float64, len(q.terms))
	length := 0
	for _, t := range r.terms {
		length += int(t.count)
	}
	for _, t := range r.terms {
		for i, n := range q.nearness(t.term) {
			best[i] = max(best[i], n)
		}
		for i, own := range q.terms {
			if own == t.term {
				keyword[i] = bm25(q.idf[own], float64(t.count), float64(length), q.average)
			}
		}
		if x, ok := q.similar[t.term]; ok {
			i := x.own
			keyword[i] = max(keyword[i], x.closeness*bm25(q.idf[q.terms[i]], float64(t.count), float64(length), q.average))
		}
	}
	for _, k := range keyword {
		f.keyword += k
	}
	f.keyword = share(f.keyword, q.weights.keyword)
	for i, t := range q.terms {
		_, w := q.lexicon.Vector(t)
		f.word += float64(w) * best[i]
		f.rare += float64(w) * best[i] * q.idf[t]
	}
	f.word, f.rare = share(f.word, q.weights.meaning), share(f.rare, q.weights.rare)
	if r.model == q.model.Name {
		f.whole = float64(r.vector.dot(q.vector))
	}
	return f
}

// nearness returns the similarity of a word to each word of the query, 0 to 1.
func (q *question) nearness(t Term) []float64 {
	if n, ok := q.wordSimilarity[t]; ok {
		return n
	}
	n := make([]float64, len(q.terms))
	v, _ := q.lexicon.Vector(t)
	for i, own := range q.terms {
		if own == t {
			n[i] = 1
			continue
		}
		if u, _ := q.lexicon.Vector(own); u != nil && v != nil {
			n[i] = max(cosine(u, v), 0)
		}
	}
	if x, ok := q.similar[t]; ok {
		n[x.own] = max(n[x.own], x.closeness)
	}
	q.wordSimilarity[t] = n
	return n
}

// cosine returns the cosine of two word vectors.
func cosine(a, b []int8) float64 {
	var ab, aa, bb int32
	b = b[:len(a)]
	for i, x := range a {
		y := b[i]
		ab += int32(x) * int32(y)
		aa += int32(x) * int32(x)
		bb += int32(y) * int32(y)
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return float64(ab) / math.Sqrt(float64(aa)*float64(bb))
}

func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}

func dot(a, b []float32) float32 {
	if len(a) != len(b) {
		return 0
	}
	var s float32
	for i, x := range a {
		s += x * b[i]
	}
	return s
}
