package engine

import "math"

// Dot returns the scalar product of two vectors; b is at least as long as a.
func Dot(a, b []float32) float32 {
	var s0, s1 float32
	b = b[:len(a)]
	i := 0
	for ; i+2 <= len(a); i += 2 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
	}
	if i < len(a) {
		s0 += a[i] * b[i]
	}
	return s0 + s1
}

// UnitVector scales a vector to length one in place; the zero vector is returned unchanged.
func UnitVector(v []float32) []float32 {
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
