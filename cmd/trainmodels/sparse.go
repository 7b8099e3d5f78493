package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

// sparse is a matrix whose rows list the columns that are not zero, in ascending order.
type sparse struct {
	cols   int
	start  []int // start of each row in the two below, and the end
	col    []int32
	values []float32
}

func (m *sparse) rows() int { return len(m.start) - 1 }

func (m *sparse) row(i int) ([]int32, []float32) {
	return m.col[m.start[i]:m.start[i+1]], m.values[m.start[i]:m.start[i+1]]
}

// triple is one value.
type triple struct {
	row, col int32
	value    float32
}

// newSparse returns the sum of triples as a matrix.
func newSparse(rows, cols int, all []triple) *sparse {
	slices.SortStableFunc(all, func(a, b triple) int {
		if a.row != b.row {
			return int(a.row - b.row)
		}
		return int(a.col - b.col)
	})
	m := &sparse{cols: cols, start: make([]int, rows+1)}
	for i, t := range all {
		if i > 0 && all[i-1].row == t.row && all[i-1].col == t.col {
			m.values[len(m.values)-1] += t.value
			continue
		}
		m.col, m.values = append(m.col, t.col), append(m.values, t.value)
		m.start[t.row+1] = len(m.col)
	}
	for i := 1; i <= rows; i++ {
		m.start[i] = max(m.start[i], m.start[i-1])
	}
	return m
}

// normalizeRows divides each row by its sum, which gives the probabilities of a random walk.
func (m *sparse) normalizeRows() {
	for i := range m.rows() {
		_, values := m.row(i)
		sum := float32(0)
		for _, v := range values {
			sum += v
		}
		for k := range values {
			values[k] /= sum
		}
	}
}

// positivePMI replaces counts by their positive pointwise mutual information: the logarithm of how much more often
// row and column meet than by chance. It drops the rest.
func (m *sparse) positivePMI() *sparse {
	columns, total := make([]float64, m.cols), 0.0
	for i, c := range m.col {
		columns[c] += float64(m.values[i])
		total += float64(m.values[i])
	}
	out := &sparse{cols: m.cols, start: make([]int, m.rows()+1)}
	for i := range m.rows() {
		cols, values := m.row(i)
		sum := 0.0
		for _, v := range values {
			sum += float64(v)
		}
		for k, c := range cols {
			if v := math.Log(float64(values[k]) * total / (sum * columns[c])); v > 0 {
				out.col, out.values = append(out.col, c), append(out.values, float32(v))
			}
		}
		out.start[i+1] = len(out.col)
	}
	return out
}

// dense is a matrix in row-major order.
type dense struct {
	width int
	v     []float32
}

func newDense(rows, width int) dense { return dense{width, make([]float32, rows*width)} }

func (d dense) rows() int           { return len(d.v) / max(d.width, 1) }
func (d dense) row(i int) []float32 { return d.v[i*d.width : (i+1)*d.width] }
func addScaled(to, x []float32, k float32) {
	to = to[:len(x)]
	for i, v := range x {
		to[i] += k * v
	}
}

// parallel runs do over parts of 0 to n, one for each core.
func parallel(n int, do func(from, to int)) {
	var wait sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for c := range cores {
		wait.Go(func() { do(n*c/cores, n*(c+1)/cores) })
	}
	wait.Wait()
}

// times returns m × d.
func (m *sparse) times(d dense) dense {
	out := newDense(m.rows(), d.width)
	parallel(m.rows(), func(from, to int) {
		for i := from; i < to; i++ {
			cols, values := m.row(i)
			for k, c := range cols {
				addScaled(out.row(i), d.row(int(c)), values[k])
			}
		}
	})
	return out
}

// transposed returns the transposed matrix.
func (m *sparse) transposed() *sparse {
	t := &sparse{cols: m.rows(), start: make([]int, m.cols+1), col: make([]int32, len(m.col)), values: make([]float32, len(m.values))}
	for _, c := range m.col {
		t.start[c+1]++
	}
	for i := range m.cols {
		t.start[i+1] += t.start[i]
	}
	next := slices.Clone(t.start)
	for i := range m.rows() {
		cols, values := m.row(i)
		for k, c := range cols {
			t.col[next[c]], t.values[next[c]] = int32(i), values[k]
			next[c]++
		}
	}
	return t
}

// gram returns dᵀ × d.
func (d dense) gram() [][]float64 {
	sum := make([][]float64, d.width)
	for i := range sum {
		sum[i] = make([]float64, d.width)
	}
	parallel(d.width, func(from, to int) { // each core computes its own rows of the result
		part := newDense(to-from, d.width)
		for r := range d.rows() {
			x := d.row(r)
			for i := from; i < to; i++ {
				if x[i] != 0 {
					addScaled(part.row(i - from)[:i+1], x[:i+1], x[i])
				}
			}
			if r%4096 == 4095 || r == d.rows()-1 { // sums of many float32 lose precision
				for i := from; i < to; i++ {
					for j, v := range part.row(i - from)[:i+1] {
						sum[i][j] += float64(v)
					}
				}
				clear(part.v)
			}
		}
	})
	for i := range sum {
		for j := range i {
			sum[j][i] = sum[i][j]
		}
	}
	return sum
}

// multiply returns d × right, of which the first width columns are used.
func (d dense) multiply(right [][]float64, width int) dense {
	out := newDense(d.rows(), width)
	r := newDense(len(right), width)
	for i := range right {
		for j := range width {
			r.row(i)[j] = float32(right[i][j])
		}
	}
	parallel(d.rows(), func(from, to int) {
		for i := from; i < to; i++ {
			for k, v := range d.row(i) {
				addScaled(out.row(i), r.row(k), v)
			}
		}
	})
	return out
}

// Oversampling columns and power iterations of the randomised SVD.
const (
	oversampling    = 10
	powerIterations = 2
)

// reduced returns the rows of m in its strongest directions, each scaled by the square root of its singular value. The method is the
// randomised one of Halko, Martinsson and Tropp.
func (m *sparse) reduced(dims int) dense {
	width := min(dims+oversampling, m.rows(), m.cols)
	turned := m.transposed()
	r := rand.New(rand.NewPCG(5, 6))
	start := newDense(m.cols, width)
	for i := range start.v {
		start.v[i] = float32(r.NormFloat64())
	}
	z := m.times(start).orthonormal()
	for range powerIterations {
		z = m.times(turned.times(z)).orthonormal()
	}
	strength, directions := eigenvectors(turned.times(z).gram())
	out := z.multiply(directions, min(dims, width))
	for i := range out.rows() {
		for k := range out.row(i) {
			out.row(i)[k] *= float32(math.Sqrt(math.Sqrt(max(strength[k], 0)))) // strengths are squared
		}
	}
	return out
}

// orthonormal returns orthonormal columns that span the columns of d.
func (d dense) orthonormal() dense {
	values, vectors := eigenvectors(d.gram())
	for i := range vectors {
		for k := range vectors[i] {
			if values[k] > 1e-9*values[0] {
				vectors[i][k] /= math.Sqrt(values[k])
			} else {
				vectors[i][k] = 0
			}
		}
	}
	return d.multiply(vectors, d.width)
}
