package memory

import (
	"encoding/binary"
	"fmt"
	"math"
)

// quantised is a vector of bytes with one scale, as stored in rows. It is exact enough for ranking.
type quantised struct {
	scale  float32
	values []int8
}

func quantise(v []float32) quantised {
	var most float32
	for _, x := range v {
		most = max(most, max(x, -x))
	}
	q := quantised{scale: most / 127, values: make([]int8, len(v))}
	if most == 0 {
		return q
	}
	for i, x := range v {
		q.values[i] = int8(math.Round(float64(x / q.scale)))
	}
	return q
}

// bytes returns the stored form: the scale as float32, then the values.
func (q quantised) bytes() []byte {
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(q.values)), math.Float32bits(q.scale))
	for _, v := range q.values {
		out = append(out, byte(v))
	}
	return out
}

// vectorOf parses the stored form.
func vectorOf(b []byte) (quantised, error) {
	if len(b) < 4 {
		return quantised{}, fmt.Errorf("stored vector has %d bytes", len(b))
	}
	q := quantised{scale: math.Float32frombits(binary.LittleEndian.Uint32(b)), values: make([]int8, len(b)-4)}
	for i, v := range b[4:] {
		q.values[i] = int8(v)
	}
	return q, nil
}

// floats returns the approximate original vector.
func (q quantised) floats() []float32 {
	out := make([]float32, len(q.values))
	for i, v := range q.values {
		out[i] = float32(v) * q.scale
	}
	return out
}

// dot returns the dot product with a vector of the same size, 0 if the sizes differ.
func (q quantised) dot(v []float32) float32 {
	if len(v) != len(q.values) {
		return 0
	}
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(v); i += 4 {
		s0 += v[i] * float32(q.values[i])
		s1 += v[i+1] * float32(q.values[i+1])
		s2 += v[i+2] * float32(q.values[i+2])
		s3 += v[i+3] * float32(q.values[i+3])
	}
	for ; i < len(v); i++ {
		s0 += v[i] * float32(q.values[i])
	}
	return (s0 + s1 + s2 + s3) * q.scale
}
