package memory

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
	"time"
)

// clustered returns unit vectors around a number of centres, all shifted equally, as embeddings of one subject are.
func clustered(n, dims, centres int, seed uint64) [][]float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	draw := func() []float32 {
		v := make([]float32, dims)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	shift := draw()
	middle := make([][]float32, centres)
	for i := range middle {
		middle[i] = draw()
	}
	out := make([][]float32, n)
	for i := range out {
		v, c := draw(), middle[r.IntN(centres)]
		for j := range v {
			v[j] = 0.7*v[j] + c[j] + shift[j]
		}
		out[i] = unitVector(v)
	}
	return out
}

func TestBinaryCodes_Recall(t *testing.T) {
	t.Parallel()
	const n, dims = 20000, 256
	all := clustered(n+50, dims, 400, 7)
	vectors, queries := all[:n], all[n:]
	c := newBinaryCodes(dims, vectors[:1000])
	stored := make([]quantised, n)
	for i, v := range vectors {
		c.add(v)
		stored[i] = quantise(v)
	}
	found := 0
	for _, q := range queries {
		truth := make([]hit, n)
		for i := range stored {
			truth[i] = hit{int32(i), stored[i].dot(q)}
		}
		sort.Slice(truth, func(a, b int) bool { return truth[a].score > truth[b].score })
		p := c.probe(q)
		best := newTopK(500)
		reach := c.maxDistance(&p, 100, func(int) bool { return true })
		for i := range c.len() {
			if c.distance(&p, i) <= reach {
				best.add(i, c.estimate(&p, i))
			}
		}
		in := map[int32]bool{}
		for _, h := range best.best() {
			in[h.at] = true
		}
		for _, h := range truth[:10] {
			if in[h.at] {
				found++
			}
		}
	}
	recall := float64(found) / float64(10*len(queries))
	t.Logf("recall of the ten nearest among 500 candidates: %.3f", recall)
	if recall < 0.97 {
		t.Errorf("recall is %.3f, want at least 0.97", recall)
	}
}

func TestRotation_KeepsLengthsAndAngles(t *testing.T) {
	t.Parallel()
	v := clustered(2, 200, 2, 3)
	r := newRotation(200)
	a, b := make([]float32, r.size), make([]float32, r.size)
	copy(a, v[0])
	copy(b, v[1])
	before := dotOf(a, b)
	r.apply(a)
	r.apply(b)
	if got := dotOf(a, a); got < 0.999 || got > 1.001 {
		t.Errorf("length is %v after rotation, want 1", got)
	}
	if got := dotOf(a, b); got-before > 0.001 || before-got > 0.001 {
		t.Errorf("product is %v after rotation, want %v", got, before)
	}
}

func dotOf(a, b []float32) float32 {
	var s float32
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func BenchmarkScan(b *testing.B) {
	const n = 1 << 20
	c := newBinaryCodes(256, nil)
	r := rand.New(rand.NewPCG(1, 1))
	for range n {
		for range c.words {
			c.bits = append(c.bits, r.Uint64())
		}
		c.scales = append(c.scales, r.Float32())
		c.ones = append(c.ones, 128)
	}
	p := c.probe(clustered(1, 256, 1, 1)[0])
	began := time.Now()
	for b.Loop() {
		best := newTopK(500)
		reach := c.maxDistance(&p, 500, func(int) bool { return true })
		for i := range c.len() {
			if c.distance(&p, i) <= reach {
				best.add(i, c.estimate(&p, i))
			}
		}
		_ = best.best()
	}
	b.ReportMetric(float64(time.Since(began).Milliseconds())/float64(b.N), "ms/scan")
}

// unitVector scales a vector to length one in place; the zero vector is returned unchanged.
func unitVector(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return v
	}
	r := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= r
	}
	return v
}
