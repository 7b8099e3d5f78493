package memory

import "math"

// rotation is a fixed pseudo-random rotation of vectors. It spreads the information evenly over the coordinates, so
// that one bit per coordinate is informative: three rounds of sign flips and a Walsh-Hadamard transform, which costs
// n log n instead of the n² of a matrix. Vectors are padded to a power of two, 64 at least.
type rotation struct {
	size  int
	signs [3][]float32
}

// rotationSeed is fixed so that codes are the same on every start.
const rotationSeed = 0x9E3779B97F4A7C15

func newRotation(dims int) *rotation {
	r := &rotation{size: 64}
	for r.size < dims {
		r.size *= 2
	}
	state := uint64(rotationSeed)
	for k := range r.signs {
		r.signs[k] = make([]float32, r.size)
		for i := range r.signs[k] {
			r.signs[k][i] = 1
			if splitMix(&state)&1 == 1 {
				r.signs[k][i] = -1
			}
		}
	}
	return r
}

// splitMix returns the next number of the SplitMix64 generator.
func splitMix(state *uint64) uint64 {
	*state += 0x9E3779B97F4A7C15
	z := *state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// apply rotates v in place; v has the rotation's size.
func (r *rotation) apply(v []float32) {
	norm := float32(1 / math.Sqrt(float64(r.size)))
	for _, signs := range r.signs {
		for i := range v {
			v[i] *= signs[i] * norm
		}
		hadamard(v)
	}
}

// hadamard applies the unnormalised Walsh-Hadamard transform in place.
func hadamard(v []float32) {
	for h := 1; h < len(v); h *= 2 {
		for i := 0; i < len(v); i += 2 * h {
			a, b := v[i:i+h], v[i+h:i+2*h]
			b = b[:len(a)]
			for j, x := range a {
				y := b[j]
				a[j], b[j] = x+y, x-y
			}
		}
	}
}
