package main

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// relationWeights are the weights of WordNet's relations; those to hyponyms, parts and members have none, because the
// inverse relations count.
var relationWeights = map[string]float32{"@": 1, "@i": 0.7, "&": 1, "+": 1, "#p": 0.6, "#m": 0.4, "#s": 0.4, "*": 0.8, ">": 0.8, "^": 0.6,
	"$": 0.6, "!": 0.5,
	"=": 0.6, ";c": 0.6, ";r": 0.2, ";u": 0.1, `\`: 0.8, "<": 0.8}

// graph connects words and synsets: words with their senses, senses by relations and with the words of their glosses.
// The first nodes are the words.
func (w *wordnet) graph() *sparse {
	size := len(w.words) + len(w.synsets)
	var all []triple
	add := func(a, b int, v float32) {
		all = append(all, triple{int32(a), int32(b), v}, triple{int32(b), int32(a), v})
	}
	for i, word := range w.words {
		for k, sense := range w.senses[word] {
			add(i, len(w.words)+sense, 1/float32(1+w.rank[word][k]))
		}
		if strings.Contains(word, "_") {
			for _, part := range strings.Split(word, "_") {
				if at, ok := w.number[w.base(part)]; ok && !glossStop[w.base(part)] {
					add(i, at, 0.5)
				}
			}
		}
	}
	for _, r := range w.relations {
		share := relationWeights[r.kind]
		if share == 0 {
			continue
		}
		if a, b, ok := w.between(r); ok {
			add(a, b, share)
		}
		add(len(w.words)+r.from, len(w.words)+r.to, share)
	}
	w.glosses(func(word, sense int, share float32) { add(word, len(w.words)+sense, share) })
	return newSparse(size, size, all)
}

// between returns the two words that a relation connects.
func (w *wordnet) between(r relation) (a, b int, ok bool) {
	from, to := w.synsets[r.from].words, w.synsets[r.to].words
	if r.word == 0 || r.other == 0 || r.word > len(from) || r.other > len(to) {
		return 0, 0, false
	}
	a, first := w.number[from[r.word-1]]
	b, second := w.number[to[r.other-1]]
	return a, b, first && second
}

// glossWeights are the weights of a word of a definition and of an example.
var glossWeights = [2]float64{0.9, 0.25}

// glosses visits the words of definitions and examples with their weights; rare words have larger ones.
func (w *wordnet) glosses(visit func(word, sense int, share float32)) {
	type texts struct{ definition, example map[string]bool }
	all, with := make([]texts, len(w.synsets)), map[string]int{}
	for i, s := range w.synsets {
		definition, example, _ := strings.Cut(s.gloss, `; "`)
		all[i] = texts{wordSet(strings.Join(w.tokens(definition), " ")), wordSet(strings.Join(w.tokens(example), " "))}
		for t := range all[i].definition {
			with[t]++
		}
	}
	for i := range all {
		for k, set := range []map[string]bool{all[i].definition, all[i].example} {
			for _, t := range slices.Sorted(maps.Keys(set)) {
				if at, ok := w.number[t]; ok {
					rare := math.Log(float64(len(w.synsets))/float64(1+with[t])) / 10
					visit(at, i, float32(glossWeights[k]*max(min(1, rare), 0)))
				}
			}
		}
	}
}

const (
	walkSteps          = 3
	walkDecay          = 0.7  // weight relative to the step before
	minWalkProbability = 2e-3 // nodes with a lower probability are dropped
)

// walks returns, for some rows of steps, the nodes that random walks from there reach.
func (steps *sparse) walks(rows []int) *sparse {
	parts := make([]sparse, len(rows))
	parallel(len(rows), func(from, to int) {
		sum, next := newRowSum(steps.cols), newRowSum(steps.cols)
		for i := from; i < to; i++ {
			cols, values := steps.row(rows[i])
			here, weight := rowSum{at: append([]int32(nil), cols...), v: append([]float32(nil), values...)}, float32(1)
			for k := range walkSteps {
				for j, c := range here.at {
					sum.add(c, weight*here.v[j])
				}
				if k == walkSteps-1 {
					break
				}
				for j, c := range here.at {
					cols, values := steps.row(int(c))
					for l, d := range cols {
						next.add(d, here.v[j]*values[l])
					}
				}
				here = next.take(minWalkProbability)
				weight *= walkDecay
			}
			all := sum.take(0)
			parts[i] = sparse{col: all.at, values: all.v}
		}
	})
	out := &sparse{cols: steps.cols, start: make([]int, len(rows)+1)}
	for i, p := range parts {
		out.col, out.values = append(out.col, p.col...), append(out.values, p.values...)
		out.start[i+1] = len(out.col)
	}
	return out
}
