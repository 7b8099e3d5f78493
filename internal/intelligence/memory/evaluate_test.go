package memory_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/db/dbtest"
)

// scores holds sums over queries, to report their means.
type scores struct{ gain, reciprocal, recall, n float64 }

func (s scores) String() string {
	return fmt.Sprintf("nDCG@10 %.3f, MRR %.3f, Recall@5 %.3f (%v queries)", s.gain/s.n, s.reciprocal/s.n, s.recall/s.n, s.n)
}

// add adds a query: gain is nDCG@10 with grades 2 and 1, the other two count relevant calls (grade 2).
func (s *scores) add(order []string, grades map[string]int) {
	s.n++
	s.gain += gain(order, grades)
	for k, id := range order {
		if grades[id] == 2 {
			s.reciprocal += 1 / float64(k+1)
			if k < 5 {
				s.recall++
			}
			return
		}
	}
}

// gain returns nDCG@10 with grades 2 and 1.
func gain(order []string, grades map[string]int) float64 {
	var got, ideal float64
	for k, id := range order[:min(10, len(order))] {
		got += (math.Pow(2, float64(grades[id])) - 1) / math.Log2(float64(k+2))
	}
	var all []int
	for _, g := range grades {
		all = append(all, -g)
	}
	slices.Sort(all)
	for k, g := range all[:min(10, len(all))] {
		ideal += (math.Pow(2, float64(-g)) - 1) / math.Log2(float64(k+2))
	}
	return got / ideal
}

// serviceWith returns a service with indexed documents, with the notes that the builtin summariser writes of them.
func serviceWith(t *testing.T, docs []document) *memory.Service {
	t.Helper()
	d := dbtest.SQLite(t)
	s := newService(t, d, nil)
	rules := nlp.NewRuleSummarizer(nlp.NewWordEmbedding())
	for i, doc := range docs {
		c := callOf(doc, fmt.Sprintf("+1415555%04d", i), time.Now().Add(-time.Hour))
		c.Summary = noteOf(t, rules, doc)
		indexCall(t, s, d, "org_a", c)
	}
	return s
}

// foundIDs returns the documents that a search finds, best first.
func foundIDs(t *testing.T, s *memory.Service, text, mode string) []string {
	t.Helper()
	var order []string
	for _, r := range search(t, s, "org_a", memory.Query{Text: text, Limit: 10, Mode: mode}).Results {
		order = append(order, strings.TrimPrefix(*r.CallID, "call_"))
	}
	return order
}

// evalRow logs one row of the table that `make eval` collects.
func evalRow(t testing.TB, part, measure string, result any, target string) {
	t.Helper()
	t.Logf("EVAL | %s | %s | %v | %s |", part, measure, result, target)
}

// recognisedDocs reads recognised transcripts of the calls from the file that the evaluation of recognition wrote;
// nil if there is none.
func recognisedDocs(t *testing.T) []document {
	t.Helper()
	b, err := os.ReadFile(os.Getenv("SONIQ_EVAL_TRANSCRIPTS"))
	if err != nil {
		return nil
	}
	var docs []document
	if err := json.Unmarshal(b, &docs); err != nil {
		t.Fatal(err)
	}
	return docs
}

// TestEvaluateSearch runs all graded queries against all calls, through the database: with the scripts of the calls,
// and with their recognised transcripts if SONIQ_EVAL_TRANSCRIPTS names a file.
func TestEvaluateSearch(t *testing.T) {
	t.Parallel()
	docs, queries := evaluation(t)
	if all := evaluateSearch(t, "search, text", "≥ 0.80", docs, queries); all.gain/all.n < 0.80 {
		t.Errorf("nDCG@10 is %.3f, want at least 0.80", all.gain/all.n)
	}
	if heard := recognisedDocs(t); heard != nil {
		same, asked := scriptsOf(heard, docs, queries)
		part := fmt.Sprintf("search, %d calls", len(heard))
		evaluateSearch(t, part+" as written", "–", same, asked)
		evaluateSearch(t, part+", recognised at 8 kHz", "≥ 0.72", heard, asked)
	}
}

// scriptsOf returns the scripts of recognised calls, and the queries that refer to one of them.
func scriptsOf(heard, docs []document, queries []query) (same []document, asked []query) {
	in := map[string]bool{}
	for _, d := range heard {
		in[d.ID] = true
	}
	for _, d := range docs {
		if in[d.ID] {
			same = append(same, d)
		}
	}
	for _, q := range queries {
		grades, meant := map[string]int{}, false
		for id, g := range q.Relevant {
			if in[id] {
				grades[id], meant = g, meant || g == 2
			}
		}
		if q.Relevant = grades; meant {
			asked = append(asked, q)
		}
	}
	return same, asked
}

func evaluateSearch(t *testing.T, part, target string, docs []document, queries []query) (all scores) {
	s := serviceWith(t, docs)
	modes := []string{memory.Hybrid}
	if os.Getenv("SONIQ_EVAL") != "" {
		modes = []string{memory.Keyword, memory.Semantic, memory.Hybrid}
		evaluateMixes(t, part, s, queries)
	}
	for _, mode := range modes {
		var sum scores
		kinds := map[string]*scores{}
		for _, q := range queries {
			order := foundIDs(t, s, q.Query, mode)
			sum.add(order, q.Relevant)
			if kinds[q.Kind] == nil {
				kinds[q.Kind] = &scores{}
			}
			kinds[q.Kind].add(order, q.Relevant)
		}
		evalRow(t, part, mode, sum, map[bool]string{true: target, false: "–"}[mode == memory.Hybrid])
		if mode == memory.Hybrid {
			for _, kind := range []string{"para", "part", "exact", "nat"} {
				evalRow(t, part, mode+", "+map[string]string{"para": "no word shared", "part": "some words shared", "exact": "names and numbers",
					"nat": "as supervisors ask"}[kind], kinds[kind], "–")
			}
		}
		all = sum
	}
	return all
}

// evaluateMixes determines the best weights with one half of the queries and reports their result on the other,
// beside the weights in use.
func evaluateMixes(t *testing.T, part string, s *memory.Service, queries []query) {
	halves := [2][]query{}
	for i, q := range queries {
		halves[i%2] = append(halves[i%2], q)
	}
	compared := map[string][]memory.Compared{}
	for _, q := range queries {
		c, err := s.Compare(context.Background(), "org_a", q.Query)
		if err != nil {
			t.Fatal(err)
		}
		compared[q.ID] = c
	}
	value := func(mix [4]float64, on []query) (all scores) {
		for _, q := range on {
			all.add(ordered(compared[q.ID], mix), q.Relevant)
		}
		return all
	}
	for i, half := range halves {
		best, most := memory.Mix, 0.0
		for _, mix := range mixes() {
			if v := value(mix, half); v.gain > most {
				best, most = mix, v.gain
			}
		}
		other := halves[1-i]
		evalRow(t, part, fmt.Sprintf("the mix that is used, half %d of the queries", 2-i), value(memory.Mix, other), "–")
		evalRow(t, part, fmt.Sprintf("best mix for half %d (%v), on half %d", i+1, best, 2-i), value(best, other), "–")
	}
}

// mixes returns the weights to try.
func mixes() (all [][4]float64) {
	for _, keyword := range []float64{0, 0.1, 0.2, 0.3, 0.5} {
		for _, word := range []float64{0, 0.25, 0.5, 0.75, 1} {
			for _, rare := range []float64{0, 0.25, 0.5, 0.75, 1} {
				all = append(all, [4]float64{keyword, 1, word, rare})
			}
		}
	}
	return all
}

// ordered returns the calls in the order of a mix, each by its best passage.
func ordered(all []memory.Compared, mix [4]float64) []string {
	best := map[string]float64{}
	for _, c := range all {
		sum := 0.0
		for i, f := range c.Features {
			sum += mix[i] * f
		}
		if old, ok := best[c.CallID]; !ok || sum > old {
			best[c.CallID] = sum
		}
	}
	var order []string
	for id := range best {
		order = append(order, id)
	}
	slices.SortFunc(order, func(a, b string) int { return cmp.Or(cmp.Compare(best[b], best[a]), cmp.Compare(a, b)) })
	for i := range order {
		order[i] = strings.TrimPrefix(order[i], "call_")
	}
	return order
}
