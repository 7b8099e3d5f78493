package codec

import (
	"soniq/internal/protocol/media/dsp"
)

// G.722 at 64 kbit/s (ITU-T G.722, 11/1988). A quadrature mirror filter splits the signal into two sub-bands. Each
// sub-band has its own ADPCM: 6 bits for the lower, 2 for the upper. The arithmetic is bit-exact to the
// recommendation; the names are those of its clause 6.

// The quadrature mirror filter (clause 6.2.1, table 11): coefficients 0 to 11; 12 to 23 mirror them.
var g722QMF = [12]int32{3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11}

// Quantizer tables (clause 6.2.1).
var (
	g722Q6 = [30]int32{0, 35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786, 858, 940, 1023,
		1121, 1219, 1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919}
	g722ILN = [31]byte{0, 63, 62, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4}
	g722ILP = [31]byte{0, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34,
		33, 32}
	g722QM6 = [64]int32{-136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232, -9360, -8576, -7856,
		-7192, -6576, -6000, -5456, -4944, -4464, -4008, -3576, -3168, -2776, -2400, -2032, -1688, -1360, -1040, -728,
		24808, 21904, 19008, 16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456,
		4944, 4464, 4008, 3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728, 432, 136, -432, -136}
	g722QM4 = [16]int32{0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456, 12896, 8968, 6288, 4240, 2584, 1200, 0}
	g722QM2 = [4]int32{-7408, -1616, 7408, 1616}
)

// Scale factor tables: the logarithmic steps by code word, and the antilogarithm.
var (
	g722StepLow  = [16]int32{-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60} // WL by RL42
	g722StepHigh = [4]int32{798, -214, 798, -214}                                                              // WH by RH2
	g722ILB      = [32]int32{2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834,
		2896, 2960, 3025, 3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008}
)

// subBand is the ADPCM state of one sub-band: its predictor and its scale factor.
type subBand struct {
	s, sz   int32    // predictions: of the signal, of its zero section
	r, p    [2]int32 // reconstructed and partially reconstructed signal, newest first
	a       [2]int32 // pole coefficients
	b, d    [6]int32 // zero coefficients and the differences they weight
	nb      int32    // logarithmic scale factor
	det     int32    // scale factor
	offset  int32    // of the antilogarithm: 8 low, 10 high
	nbLimit int32    // upper limit of nb
}

// scale adapts the scale factor by the step of a code word (blocks LOGSC, SCALE).
func (b *subBand) scale(step int32) {
	b.nb = max(0, min(b.nbLimit, b.nb*127>>7+step))
	v, shift := g722ILB[b.nb>>6&31], b.offset-b.nb>>11
	if shift < 0 {
		b.det = v << -shift << 2
		return
	}
	b.det = v >> shift << 2
}

// predict takes the quantized difference and computes the next prediction (blocks RECONS, PARREC, UPPOL2, UPPOL1,
// UPZERO, FILTEP, FILTEZ, PREDIC).
func (b *subBand) predict(d int32) {
	r, p := dsp.Saturate(b.s+d), dsp.Saturate(b.sz+d)
	b.updatePoles(p)
	b.updateZeros(d)
	b.p[1], b.p[0] = b.p[0], p
	b.r[1], b.r[0] = b.r[0], r
	sp := dsp.Saturate(b.a[0]*dsp.Saturate(2*b.r[0])>>15 + b.a[1]*dsp.Saturate(2*b.r[1])>>15)
	sz := int32(0)
	for i, v := range b.d {
		sz += b.b[i] * dsp.Saturate(2*v) >> 15
	}
	b.sz = dsp.Saturate(sz)
	b.s = dsp.Saturate(sp + b.sz)
}

func (b *subBand) updatePoles(p int32) {
	same1, same2 := p^b.p[0] >= 0, p^b.p[1] >= 0
	w := dsp.Saturate(b.a[0] << 2)
	if same1 {
		w = min(-w, 32767)
	}
	a2 := w>>7 - 128 + b.a[1]*32512>>15
	if same2 {
		a2 += 256
	}
	a2 = max(-12288, min(12288, a2))
	a1 := b.a[0]*32640>>15 - 192
	if same1 {
		a1 += 384
	}
	limit := dsp.Saturate(15360 - a2)
	b.a[0], b.a[1] = max(-limit, min(limit, dsp.Saturate(a1))), a2
}

func (b *subBand) updateZeros(d int32) {
	for i := range b.b {
		step := int32(128)
		switch {
		case d == 0:
			step = 0
		case b.d[i]^d < 0:
			step = -128
		}
		b.b[i] = dsp.Saturate(step + b.b[i]*32640>>15)
	}
	copy(b.d[1:], b.d[:5])
	b.d[0] = d
}

// g722State is the common state of encoder and decoder.
type g722State struct {
	low, high subBand
	x         [24]int32 // history of the quadrature mirror filter
}

func newG722State() g722State {
	return g722State{low: subBand{det: 32, offset: 8, nbLimit: 18432}, high: subBand{det: 8, offset: 10, nbLimit: 22528}}
}

// qmf shifts two values into the quadrature mirror filter and returns the sums of its two phases.
func (g *g722State) qmf(a, b int32) (even, odd int32) {
	copy(g.x[:], g.x[2:])
	g.x[22], g.x[23] = a, b
	for i, c := range g722QMF {
		odd += g.x[2*i] * c
		even += g.x[2*i+1] * g722QMF[11-i]
	}
	return even, odd
}

// adapt updates both sub-bands by the code word of a pair of samples.
func (g *g722State) adapt(low, high byte) {
	d := g.low.det * g722QM4[low>>2] >> 15
	g.low.scale(g722StepLow[low>>2])
	g.low.predict(d)
	d = g.high.det * g722QM2[high] >> 15
	g.high.scale(g722StepHigh[high])
	g.high.predict(d)
}

// g722Encoder encodes every two samples at 16 kHz into one code word.
type g722Encoder struct{ g722State }

func newG722Encoder() *g722Encoder { return &g722Encoder{newG722State()} }

// Rate returns the sample rate, Hz.
func (e *g722Encoder) Rate() int { return 16000 }

// Encode appends the code words of pcm to dst. The length of pcm should be even; an odd last sample is dropped.
func (e *g722Encoder) Encode(dst []byte, pcm []int16) []byte {
	for i := 0; i+1 < len(pcm); i += 2 {
		even, odd := e.qmf(int32(pcm[i]), int32(pcm[i+1]))
		low, high := e.quantizeLow((even+odd)>>14), e.quantizeHigh((even-odd)>>14)
		e.adapt(low, high)
		dst = append(dst, high<<6|low)
	}
	return dst
}

func magnitude(v int32) int32 { return v ^ v>>31 }

func (e *g722Encoder) quantizeLow(x int32) byte {
	el := dsp.Saturate(x - e.low.s)
	w, i := magnitude(el), 1
	for top := 30; i < top; { // binary search for the first threshold above w
		if m := (i + top) / 2; w >= g722Q6[m]*e.low.det>>12 {
			i = m + 1
		} else {
			top = m
		}
	}
	if el < 0 {
		return g722ILN[i]
	}
	return g722ILP[i]
}

func (e *g722Encoder) quantizeHigh(x int32) byte {
	eh := dsp.Saturate(x - e.high.s)
	far := magnitude(eh) >= 564*e.high.det>>12
	switch {
	case eh < 0 && far:
		return 0
	case eh < 0:
		return 1
	case far:
		return 2
	}
	return 3
}

// g722Decoder decodes every code word into two samples at 16 kHz.
type g722Decoder struct{ g722State }

func newG722Decoder() *g722Decoder { return &g722Decoder{newG722State()} }

// Rate returns the sample rate, Hz.
func (d *g722Decoder) Rate() int { return 16000 }

// Decode appends the samples of a payload.
func (d *g722Decoder) Decode(dst []int16, payload []byte) []int16 {
	for _, w := range payload {
		low, high := w&63, w>>6
		rl := limit15(d.low.s + d.low.det*g722QM6[low]>>15)
		rh := limit15(d.high.s + d.high.det*g722QM2[high]>>15)
		d.adapt(low, high)
		even, odd := d.qmf(rl+rh, rl-rh)
		dst = append(dst, int16(dsp.Saturate(even>>11)), int16(dsp.Saturate(odd>>11)))
	}
	return dst
}

// DecodeG722 decodes a whole recording in G.722 at 64 kbit/s to 16 kHz, two samples per byte.
func DecodeG722(recording []byte) []int16 {
	return newG722Decoder().Decode(make([]int16, 0, 2*len(recording)), recording)
}

func limit15(v int32) int32 { return max(-16384, min(16383, v)) }
