package main

import "slices"

// rowSum accumulates a sparse row: the columns that are not zero, and in v their values or, while adding, those of
// all columns.
type rowSum struct {
	at []int32
	v  []float32
}

func newRowSum(cols int) *rowSum { return &rowSum{v: make([]float32, cols)} }

func (l *rowSum) add(col int32, v float32) {
	if l.v[col] == 0 {
		l.at = append(l.at, col)
	}
	l.v[col] += v
}

// take returns the sum, in ascending order of columns and without values below least, and starts again.
func (l *rowSum) take(least float32) rowSum {
	slices.Sort(l.at)
	var out rowSum
	for _, c := range l.at {
		if l.v[c] >= least && l.v[c] > 0 {
			out.at, out.v = append(out.at, c), append(out.v, l.v[c])
		}
		l.v[c] = 0
	}
	l.at = l.at[:0]
	return out
}
