package memory

import "math/bits"

// binaryCodes holds one bit per coordinate of many vectors and estimates dot products with them, as RaBitQ does:
// vectors are centred on their mean and rotated, and stored as signs with one scale per vector. The query is
// quantised to four bits per coordinate, so that a product costs a few ANDs and population counts. Callers
// synchronise access.
type binaryCodes struct {
	rot    *rotation
	mean   []float32 // padded to the rotation's size
	words  int       // uint64 per vector
	bits   []uint64
	scales []float32
	ones   []uint16 // bits set, per vector
}

// newBinaryCodes returns empty codes, centred on the mean of the sample.
func newBinaryCodes(dims int, sample [][]float32) *binaryCodes {
	c := &binaryCodes{rot: newRotation(dims)}
	c.words = c.rot.size / 64
	c.mean = make([]float32, c.rot.size)
	for _, v := range sample {
		for i, x := range v {
			c.mean[i] += x / float32(len(sample))
		}
	}
	return c
}

// len returns the number of vectors.
func (c *binaryCodes) len() int { return len(c.scales) }

// add appends a vector.
func (c *binaryCodes) add(v []float32) {
	r := make([]float32, c.rot.size)
	copy(r, v)
	for i, m := range c.mean {
		r[i] -= m
	}
	c.rot.apply(r)
	var l1, l2 float32
	at := len(c.bits)
	c.bits = append(c.bits, make([]uint64, c.words)...)
	n := 0
	for i, x := range r {
		l2 += x * x
		if x > 0 {
			c.bits[at+i/64] |= 1 << (i % 64)
			l1 += x
			n++
		} else {
			l1 -= x
		}
	}
	scale := float32(0)
	if l1 > 0 {
		scale = l2 / l1
	}
	c.scales = append(c.scales, scale)
	c.ones = append(c.ones, uint16(n))
}

// probe is a query vector prepared for scanning codes.
type probe struct {
	planes          []uint64 // four bit planes, plane after plane for each word
	signs           []uint64 // as in binaryCodes
	low, step, base float32
	offset          float32 // dot product with the mean
}

// probeLevels is the highest value of a quantised coordinate.
const probeLevels = 15

// probe prepares a query vector.
func (c *binaryCodes) probe(q []float32) probe {
	r := make([]float32, c.rot.size)
	copy(r, q)
	p := probe{planes: make([]uint64, 4*c.words), signs: make([]uint64, c.words)}
	for i, m := range c.mean {
		p.offset += r[i] * m
	}
	c.rot.apply(r)
	low, high := r[0], r[0]
	for _, x := range r {
		low, high = min(low, x), max(high, x)
	}
	p.low, p.step = low, (high-low)/probeLevels
	for i, x := range r {
		p.base += x
		if x > 0 {
			p.signs[i/64] |= 1 << (i % 64)
		}
		level := uint64(0)
		if p.step > 0 {
			level = uint64((x-low)/p.step + 0.5)
		}
		for k := range 4 {
			p.planes[4*(i/64)+k] |= level >> k & 1 << (i % 64)
		}
	}
	return p
}

// distance returns the number of coordinates whose sign differs from the query's. It costs a quarter of an estimate,
// and is enough to exclude most vectors.
func (c *binaryCodes) distance(p *probe, i int) int {
	code := c.bits[i*c.words : (i+1)*c.words]
	signs := p.signs[:len(code)]
	n := 0
	for w, x := range code {
		n += bits.OnesCount64(x ^ signs[w])
	}
	return n
}

// near calls each for the vectors of a range whose distance is at most reach.
func (c *binaryCodes) near(p *probe, from, to, reach int, each func(i int)) {
	if c.words != 4 {
		for i := from; i < to; i++ {
			if c.distance(p, i) <= reach {
				each(i)
			}
		}
		return
	}
	q0, q1, q2, q3 := p.signs[0], p.signs[1], p.signs[2], p.signs[3]
	all := c.bits[4*from : 4*to]
	for i := from; len(all) >= 4; i++ {
		n := bits.OnesCount64(all[0]^q0) + bits.OnesCount64(all[1]^q1) + bits.OnesCount64(all[2]^q2) + bits.OnesCount64(all[3]^q3)
		if n <= reach {
			each(i)
		}
		all = all[4:]
	}
}

// Sample size to determine the limit of the distance, and the share of all vectors that is estimated (one in
// nearShare).
const (
	nearSample   = 4096
	nearShare    = 24
	minEstimates = 20 // minimum of estimates per candidate
)

// maxDistance returns the distance up to which vectors are estimated to find k candidates: one in nearShare of the
// allowed vectors, determined from a sample. If few are allowed it returns the largest distance.
func (c *binaryCodes) maxDistance(p *probe, k int, allowed func(i int) bool) int {
	all := 64 * c.words
	n := c.len()
	step := max(n/nearSample, 1)
	counts := make([]int, all+1)
	seen := 0
	for i := 0; i < n; i += step {
		if allowed(i) {
			counts[c.distance(p, i)]++
			seen++
		}
	}
	want := max(seen/nearShare, minEstimates*k/step)
	if want >= seen || want < 16 {
		return all
	}
	for d, got := 0, 0; d < all; d++ {
		if got += counts[d]; got >= want {
			return d
		}
	}
	return all
}

// estimate returns the estimated dot product of the query with vector i.
func (c *binaryCodes) estimate(p *probe, i int) float32 {
	code := c.bits[i*c.words : (i+1)*c.words]
	planes := p.planes[:4*len(code)]
	var n0, n1, n2, n3 int
	for w, x := range code {
		g := planes[4*w : 4*w+4 : 4*w+4]
		n0 += bits.OnesCount64(x & g[0])
		n1 += bits.OnesCount64(x & g[1])
		n2 += bits.OnesCount64(x & g[2])
		n3 += bits.OnesCount64(x & g[3])
	}
	set := p.low*float32(c.ones[i]) + p.step*float32(n0+2*n1+4*n2+8*n3)
	return p.offset + (2*set-p.base)*c.scales[i]
}
