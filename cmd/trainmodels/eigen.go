package main

import (
	"math"
	"slices"
)

// eigenvectors returns the eigenvalues of a symmetric matrix, largest first, and its eigenvectors in the columns of a
// matrix. It uses Jacobi rotations and overwrites the matrix.
func eigenvectors(a [][]float64) (values []float64, vectors [][]float64) {
	n := len(a)
	v := make([][]float64, n) // rows are eigenvectors, which is faster
	for i := range v {
		v[i] = make([]float64, n)
		v[i][i] = 1
	}
	for range 30 {
		off, all := 0.0, 0.0
		for i := range n {
			for j := range n {
				all += a[i][j] * a[i][j]
				if i != j {
					off += a[i][j] * a[i][j]
				}
			}
		}
		if off <= 1e-18*all {
			break
		}
		for p := range n {
			for q := p + 1; q < n; q++ {
				rotate(a, v, p, q)
			}
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return compare(a[y][y], a[x][x]) })
	values, vectors = make([]float64, n), make([][]float64, n)
	for i := range vectors {
		vectors[i] = make([]float64, n)
	}
	for k, at := range order {
		values[k] = a[at][at]
		for i := range n {
			vectors[i][k] = v[at][i]
		}
	}
	return values, vectors
}

func compare(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// rotate makes a[p][q] zero.
func rotate(a, v [][]float64, p, q int) {
	if a[p][q] == 0 {
		return
	}
	theta := (a[q][q] - a[p][p]) / (2 * a[p][q])
	t := 1 / (math.Abs(theta) + math.Sqrt(theta*theta+1))
	if theta < 0 {
		t = -t
	}
	c := 1 / math.Sqrt(t*t+1)
	s := t * c
	for k := range a {
		x, y := a[k][p], a[k][q]
		a[k][p], a[k][q] = c*x-s*y, s*x+c*y
	}
	rotateRows(a[p], a[q], c, s)
	rotateRows(v[p], v[q], c, s)
}

func rotateRows(x, y []float64, c, s float64) {
	for k := range x {
		x[k], y[k] = c*x[k]-s*y[k], s*x[k]+c*y[k]
	}
}
