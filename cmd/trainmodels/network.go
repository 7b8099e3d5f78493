package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// network is a linear map of the inputs plus one hidden layer trained on the residual of the map.
type network struct {
	hidden          int
	mean, deviation []float64   // of the inputs
	linear          [][]float64 // by output, over normalised inputs
	scale           []float64   // standard deviation of the residual, by output
	weights         params
}

// params are the trained weights in sequence: hidden weights by unit followed by the bias, output weights by
// coefficient followed by the bias.
type params struct {
	hidden []float32 // hidden × (inputs+1)
	output []float32 // cepstra × (hidden+1)
}

const (
	ridge        = 100  // regularisation of the linear map
	decay        = 1e-3 // weight decay
	batchSize    = 512
	learningRate = 1e-3
)

// newNetwork computes the linear map and initialises the hidden layer at random.
func newNetwork(p *framePairs, hidden int) *network {
	n := &network{hidden: hidden, mean: make([]float64, inputs), deviation: make([]float64, inputs)}
	count := float64(p.len())
	for i, v := range p.in {
		n.mean[i%inputs] += float64(v) / count
	}
	for i, v := range p.in {
		d := float64(v) - n.mean[i%inputs]
		n.deviation[i%inputs] += d * d / count
	}
	for i, v := range n.deviation {
		n.deviation[i] = math.Sqrt(v) + 1e-6
	}
	for i, v := range p.in { // in place, because there are many
		p.in[i] = float32((float64(v) - n.mean[i%inputs]) / n.deviation[i%inputs])
	}
	n.solve(p)
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(size, in, out int) []float32 {
		w, reach := make([]float32, size), math.Sqrt(6/float64(in+out))
		for i := range w {
			w[i] = float32(reach * (2*r.Float64() - 1))
		}
		return w
	}
	n.weights = params{draw(hidden*(inputs+1), inputs, hidden), draw(cepstra*(hidden+1), hidden, cepstra)}
	return n
}

// solve computes the linear map by least squares, and replaces p.out by the scaled residual.
func (n *network) solve(p *framePairs) {
	square := make([][]float64, inputs)
	right := make([][]float64, inputs)
	for i := range square {
		square[i], right[i] = make([]float64, inputs), make([]float64, cepstra)
		square[i][i] = ridge
	}
	for t := range p.len() {
		x, y := p.in[t*inputs:(t+1)*inputs], p.out[t*cepstra:(t+1)*cepstra]
		for i, a := range x {
			row := square[i]
			for j, b := range x[:i+1] {
				row[j] += float64(a * b)
			}
			for j, b := range y {
				right[i][j] += float64(a * b)
			}
		}
	}
	cholesky(square, right)
	n.linear, n.scale = make([][]float64, cepstra), make([]float64, cepstra)
	for c := range n.linear {
		n.linear[c] = make([]float64, inputs)
		for i := range inputs {
			n.linear[c][i] = right[i][c]
		}
	}
	for t := range p.len() {
		x, y := p.in[t*inputs:(t+1)*inputs], p.out[t*cepstra:(t+1)*cepstra]
		for c := range y {
			sum := 0.0
			for i, v := range x {
				sum += n.linear[c][i] * float64(v)
			}
			y[c] -= float32(sum)
			n.scale[c] += float64(y[c]) * float64(y[c]) / float64(p.len())
		}
	}
	for c, v := range n.scale {
		n.scale[c] = math.Sqrt(v) + 1e-9
	}
	for i := range p.out {
		p.out[i] /= float32(n.scale[i%cepstra])
	}
}

// cholesky solves square × x = right in place; it uses the lower half of the symmetric square.
func cholesky(square, right [][]float64) {
	for i := range square {
		for j := 0; j <= i; j++ {
			sum := square[i][j]
			for k := range j {
				sum -= square[i][k] * square[j][k]
			}
			if i == j {
				square[i][i] = math.Sqrt(max(sum, 1e-12))
			} else {
				square[i][j] = sum / square[j][j]
			}
		}
	}
	for c := range right[0] {
		for i := range right {
			for k := range i {
				right[i][c] -= square[i][k] * right[k][c]
			}
			right[i][c] /= square[i][i]
		}
		for i := len(right) - 1; i >= 0; i-- {
			for k := i + 1; k < len(right); k++ {
				right[i][c] -= square[k][i] * right[k][c]
			}
			right[i][c] /= square[i][i]
		}
	}
}

// train runs a number of epochs over all pairs in random order, and reports the mean squared error of each.
func (n *network) train(p *framePairs, epochs int, tell func(epoch int, loss float64)) {
	r := rand.New(rand.NewPCG(3, 4))
	grow := params{make([]float32, len(n.weights.hidden)), make([]float32, len(n.weights.output))}
	hidden, output := newAdam(len(grow.hidden)), newAdam(len(grow.output))
	for epoch := range epochs {
		order, loss := r.Perm(p.len()), 0.0
		for len(order) > 0 {
			batch := order[:min(batchSize, len(order))]
			order = order[len(batch):]
			clear(grow.hidden)
			clear(grow.output)
			for _, t := range batch {
				loss += n.learn(p.in[t*inputs:(t+1)*inputs], p.out[t*cepstra:(t+1)*cepstra], &grow)
			}
			hidden.step(n.weights.hidden, grow.hidden, len(batch))
			output.step(n.weights.output, grow.output, len(batch))
		}
		tell(epoch+1, loss/float64(p.len()*cepstra))
	}
}

// learn adds the gradient of one pair's error to grow and returns the error.
func (n *network) learn(x, y []float32, grow *params) (loss float64) {
	h, back := make([]float32, n.hidden), make([]float32, n.hidden)
	for i := range h {
		w := n.weights.hidden[i*(inputs+1) : (i+1)*(inputs+1)]
		h[i] = max(product(w[:inputs], x)+w[inputs], 0)
	}
	for c, want := range y {
		w, g := n.weights.output[c*(n.hidden+1):(c+1)*(n.hidden+1)], grow.output[c*(n.hidden+1):(c+1)*(n.hidden+1)]
		off := product(w[:n.hidden], h) + w[n.hidden] - want
		loss += float64(off * off)
		g[n.hidden] += off
		for i, v := range h {
			g[i] += off * v
			back[i] += off * w[i]
		}
	}
	for i, v := range h {
		if v <= 0 {
			continue
		}
		g, b := grow.hidden[i*(inputs+1):(i+1)*(inputs+1)], back[i]
		g[inputs] += b
		for j, v := range x {
			g[j] += b * v
		}
	}
	return loss
}

func product(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0, s1, s2, s3 = s0+a[i]*b[i], s1+a[i+1]*b[i+1], s2+a[i+2]*b[i+2], s3+a[i+3]*b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// adam is the Adam optimiser (Kingma and Ba) with its usual constants.
type adam struct {
	first, second []float32
	steps         float64
}

func newAdam(n int) *adam { return &adam{first: make([]float32, n), second: make([]float32, n)} }

func (a *adam) step(w, grow []float32, batch int) {
	a.steps++
	rate := float32(learningRate * math.Sqrt(1-math.Pow(0.999, a.steps)) / (1 - math.Pow(0.9, a.steps)))
	for i, g := range grow {
		g = (g + decay*w[i]) / float32(batch)
		a.first[i] = 0.9*a.first[i] + 0.1*g
		a.second[i] = 0.999*a.second[i] + 0.001*g*g
		w[i] -= rate * a.first[i] / (float32(math.Sqrt(float64(a.second[i]))) + 1e-8)
	}
}

// bytes returns the network in the format of bandwidth.bin.
func (n *network) bytes() []byte {
	var b []byte
	for _, v := range []uint32{neighbours, inputs, uint32(n.hidden), cepstra} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	put := func(v float64) { b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v))) }
	for _, all := range [][]float64{n.mean, n.deviation} {
		for _, v := range all {
			put(v)
		}
	}
	layer := func(w []float32, width int, scale func(row int) float64) {
		for i, v := range w { // each row is followed by its bias; the file has all biases after the rows
			if i%(width+1) < width {
				put(float64(v) * scale(i/(width+1)))
			}
		}
		for i := width; i < len(w); i += width + 1 {
			put(float64(w[i]) * scale(i/(width+1)))
		}
	}
	layer(n.weights.hidden, inputs, func(int) float64 { return 1 })
	layer(n.weights.output, n.hidden, func(c int) float64 { return n.scale[c] })
	for _, row := range n.linear {
		for _, v := range row {
			put(v)
		}
	}
	return b
}
