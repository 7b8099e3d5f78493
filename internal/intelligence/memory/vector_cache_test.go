package memory

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"testing"
)

// randomRow returns a passage of random words: low ones are frequent.
func randomRow(r *rand.Rand, key int64, words int) row {
	var terms []Term
	for range 20 + r.IntN(60) {
		f := r.Float64()
		terms = append(terms, Term(float64(words)*f*f*f)*2654435761)
	}
	return row{key: key, kind: KindSummary, model: "m", vector: quantised{r.Float32(),
		[]int8{int8(r.IntN(256) - 128), int8(r.IntN(256) - 128)}},
		terms: countTerms(terms)}
}

func TestVectorCache_ReturnsAddedRows(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	x := newIndex("org_a", Model{Name: "m", Dimensions: 2}, 1<<20)
	var all []row
	for i := range partSize + 500 {
		one := randomRow(r, int64(i), 30000)
		switch i % 7 {
		case 3:
			one.model = "another"
		case 5:
			one.terms = nil
		case 6:
			one.terms[0].count = 200
		}
		all = append(all, one)
		x.add(one)
	}
	for i, want := range all {
		rows, keys := x.rows([]int32{int32(i)})
		if len(rows) != 1 || len(keys) != 0 {
			t.Fatalf("passage %d: %d rows, %d keys", i, len(rows), len(keys))
		}
		got := rows[0]
		slices.SortFunc(got.terms, func(a, b termCount) int { return int(int64(a.term) - int64(b.term)) })
		if got.key != want.key || !slices.Equal(got.terms, want.terms) {
			t.Fatalf("passage %d: key %d and words %v, want %d and %v", i, got.key, got.terms, want.key, want.terms)
		}
		if want.model != "m" {
			want.vector = quantised{values: []int8{}}
		}
		if !reflect.DeepEqual(got.vector, want.vector) {
			t.Fatalf("passage %d: vector %v, want %v", i, got.vector, want.vector)
		}
	}
}

func TestVectorCache_Limit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	x := newIndex("org_a", Model{Name: "m", Dimensions: 2}, 10000)
	places := []int32{}
	for i := range 1000 {
		x.add(randomRow(r, int64(1000+i), 3000))
		places = append(places, int32(i))
	}
	rows, keys := x.rows(places)
	if len(rows) == 0 || len(rows) > 500 || len(rows)+len(keys) != 1000 || keys[0] != rows[len(rows)-1].key+1 {
		t.Errorf("%d are kept and %d are not", len(rows), len(keys))
	}
	if x.cache.bytes > 20000 {
		t.Errorf("they take %d bytes, want about 10000", x.cache.bytes)
	}
}

func TestInvertedIndex_PrunedSearchIsExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	w := newInvertedIndex()
	const n = 60000
	var rows []row
	for i := range n {
		rows = append(rows, randomRow(r, int64(i), 2000))
		w.add(rows[i].terms)
	}
	for q := range 20 {
		var query []Term
		for _, word := range []int{300 + q, 40 + q, 60 + q, 10 + q, 3 + q} { // the last ones occur in many passages
			query = append(query, Term(word)*2654435761)
		}
		allowed := func(at int) bool { return q%2 == 0 || at%3 == 0 }
		s := w.takeScoreboard()
		s.prepare(w.average())
		scores := map[int32]float32{}
		for i, row := range rows {
			for _, t := range row.terms {
				if l := w.postings[t.term]; slices.Contains(query, t.term) && !l.common && allowed(i) {
					scores[int32(i)] += float32(w.idf(t.term)) * s.share(int(min(t.count, 4)), w.lengths[i])
				}
			}
		}
		var want []float32
		for _, v := range scores {
			want = append(want, v)
		}
		sort.Slice(want, func(a, b int) bool { return want[a] > want[b] })
		got := w.search(query, allowed, 100)
		if len(got) != 100 {
			t.Fatalf("query %d: %d found", q, len(got))
		}
		for i, h := range got {
			if d := h.score - want[i]; d > 1e-4 || d < -1e-4 || h.score-scores[h.at] > 1e-4 {
				t.Fatalf("query %d: place %d has %v, want %v", q, i, h.score, want[i])
			}
		}
	}
}
