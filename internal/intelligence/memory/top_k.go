package memory

import "slices"

// hit is a passage by its position in the index, with a score.
type hit struct {
	at    int32
	score float32
}

// topK collects the k best of many hits: it collects several times as many and drops the lower ones, which costs less
// than a heap if most hits are rejected at once.
type topK struct {
	k         int
	hits      []hit
	threshold float32 // hits up to this score are rejected
}

func newTopK(k int) *topK { return &topK{k: k, hits: make([]hit, 0, 4*k), threshold: -1e30} }

func (t *topK) add(at int, score float32) {
	if score <= t.threshold {
		return
	}
	t.hits = append(t.hits, hit{int32(at), score})
	if len(t.hits) == cap(t.hits) {
		t.shrink()
	}
}

// shrink removes all but the k best.
func (t *topK) shrink() {
	t.sort()
	t.hits = t.hits[:t.k]
	t.threshold = t.hits[t.k-1].score
}

func (t *topK) sort() {
	slices.SortFunc(t.hits, func(a, b hit) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return int(b.at - a.at)
	})
}

// best returns the k best, best first.
func (t *topK) best() []hit {
	t.sort()
	return t.hits[:min(t.k, len(t.hits))]
}

// lowest returns the score of the last of the k best, and a value below all scores while there are fewer.
func (t *topK) lowest() float32 {
	if len(t.hits) < t.k {
		return -1e30
	}
	t.shrink()
	return t.threshold
}
