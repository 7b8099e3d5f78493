package speech

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"

	"soniq/internal/intelligence/engine"
)

// bandwidthData holds the trained network, little-endian: four uint32 (context frames on each side, inputs,
// hidden units, outputs) and float32 for input mean, input deviation, hidden weights by unit, hidden bias,
// output weights by coefficient, output bias, and the linear path by coefficient.
//
//go:embed bandwidth.bin
var bandwidthData []byte

// BandwidthExtension is a network that maps the cepstra of upsampled narrow-band speech to those that full 8 kHz
// bandwidth would have given: a linear map of nine frames plus one hidden layer.
type BandwidthExtension struct {
	context                int
	mean, deviation        []float32
	hidden                 [][]float32
	hiddenBias, outputBias []float32
	output, linear         [][]float32
}

// loadBandwidthExtension reads the network that is embedded in the binary.
func loadBandwidthExtension() *BandwidthExtension {
	n, err := ReadBandwidthExtension(bandwidthData)
	if err != nil {
		panic(err) // the embedded file is damaged, which the tests detect
	}
	return n
}

// ReadBandwidthExtension reads a network in the format of bandwidth.bin, which cmd/trainmodels writes.
func ReadBandwidthExtension(data []byte) (*BandwidthExtension, error) {
	if len(data) < 16 {
		return nil, fmt.Errorf("bandwidth network has %d bytes", len(data))
	}
	size := func(i int) int { return int(binary.LittleEndian.Uint32(data[4*i:])) }
	context, in, hidden, out := size(0), size(1), size(2), size(3)
	if context > 50 || in != (2*context+1)*cepstra || hidden > 4096 || out != cepstra {
		return nil, fmt.Errorf("bandwidth network of %d inputs, %d hidden units and %d outputs over %d frames", in, hidden, out,
			2*context+1)
	}
	if want := 16 + 4*(2*in+hidden*in+hidden+out*hidden+out+out*in); len(data) != want {
		return nil, fmt.Errorf("bandwidth network has %d bytes, want %d", len(data), want)
	}
	r := float32Reader{data[16:]}
	return &BandwidthExtension{
		context: context, mean: r.take(in), deviation: r.take(in),
		hidden: r.rows(hidden, in), hiddenBias: r.take(hidden),
		output: r.rows(out, hidden), outputBias: r.take(out), linear: r.rows(out, in),
	}, nil
}

// float32Reader reads little-endian float32 values one after another.
type float32Reader struct{ b []byte }

func (f *float32Reader) take(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(f.b[4*i:]))
	}
	f.b = f.b[4*n:]
	return out
}

func (f *float32Reader) rows(n, width int) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		out[i] = f.take(width)
	}
	return out
}

// Extend replaces the cepstra of one utterance, frame by frame, by their extended form. It changes cep in place.
func (n *BandwidthExtension) Extend(cep []float32) {
	subtractMean(cep)
	source := append([]float32(nil), cep...)
	frames := len(cep) / cepstra
	x, h := make([]float32, len(n.mean)), make([]float32, len(n.hidden))
	for t := range frames {
		for k := -n.context; k <= n.context; k++ {
			at := min(max(t+k, 0), frames-1) * cepstra
			copy(x[(k+n.context)*cepstra:], source[at:at+cepstra])
		}
		n.extendFrame(x, h, cep[t*cepstra:(t+1)*cepstra])
	}
}

// extendFrame computes one output frame from its context x; h is scratch memory for the hidden layer.
func (n *BandwidthExtension) extendFrame(x, h, out []float32) {
	for i := range x {
		x[i] = (x[i] - n.mean[i]) / n.deviation[i]
	}
	for i, w := range n.hidden {
		h[i] = max(n.hiddenBias[i]+engine.Dot(w, x), 0)
	}
	for i := range out {
		out[i] = n.outputBias[i] + engine.Dot(n.output[i], h) + engine.Dot(n.linear[i], x)
	}
}

// subtractMean subtracts from each coefficient its mean over the utterance (cepstral mean normalisation).
func subtractMean(cep []float32) {
	var mean [cepstra]float32
	for i, v := range cep {
		mean[i%cepstra] += v
	}
	for i := range mean {
		mean[i] /= float32(max(len(cep)/cepstra, 1))
	}
	for i := range cep {
		cep[i] -= mean[i%cepstra]
	}
}
