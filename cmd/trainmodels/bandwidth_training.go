package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"soniq/internal/intelligence/engine/speech"
)

const (
	cepstra    = 13 // coefficients per frame
	neighbours = 4  // frames on each side in the input of the network
	inputs     = (2*neighbours + 1) * cepstra
)

// defaultVoices are the voices of flite with 16 kHz.
var defaultVoices = []string{"slt", "rms", "awb", "kal16"}

// bandwidthTraining has the parameters of training the bandwidth network: each text is spoken by one or more voices,
// and the network learns to restore the wide-band speech from its telephone sound.
type bandwidthTraining struct {
	texts           []string
	voices          []string
	voicesPerText   int // number of voices per text; 0 means 1
	hidden          int
	epochs          int
	noisyShare      float64  // share of the texts with noise on the line
	resampledVoices []string // voices of which half of the texts are resampled: faster and higher, or slower and lower
}

// framePairs are input frames with their target frames: inputs values for each cepstra ones.
type framePairs struct{ in, out []float32 }

func (p *framePairs) len() int { return len(p.out) / cepstra }

// build synthesises, trains, and returns the file.
func (r bandwidthTraining) build() ([]byte, error) {
	p, err := r.trainingPairs()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "%d frames of speech\n", p.len())
	n := newNetwork(&p, r.hidden)
	n.train(&p, r.epochs, func(epoch int, loss float64) { fmt.Fprintf(os.Stderr, "epoch %d of %d: %.4f\n", epoch, r.epochs, loss) })
	b := n.bytes()
	if _, err := speech.ReadBandwidthExtension(b); err != nil {
		return nil, err
	}
	return b, nil
}

// trainingPairs returns the pairs of all texts.
func (r bandwidthTraining) trainingPairs() (p framePairs, err error) {
	front, err := speech.NewFrontEnd()
	if err != nil {
		return p, fmt.Errorf("open the recogniser's front end: %w", err)
	}
	chance := rand.New(rand.NewPCG(11, 11))
	for i := range len(r.texts) * max(r.voicesPerText, 1) {
		round := i / len(r.texts)
		voice, again := r.voices[(i+round)%len(r.voices)], i/len(r.voices)
		x, err := synthesize(voice, r.texts[i%len(r.texts)])
		if err != nil {
			return p, err
		}
		if slices.Contains(r.resampledVoices, voice) && again/2%2 == 1 {
			x = resampled(x, 0.85+0.3*chance.Float64())
		}
		line := x
		if chance.Float64() < r.noisyShare {
			line = withNoise(x, 10+15*chance.Float64(), chance)
		}
		wide, err := front.Wide(rounded(x))
		if err != nil {
			return p, err
		}
		narrow, err := front.Narrow(telephone(line, []float64{0, 250}[again%2]))
		if err != nil {
			return p, err
		}
		p.add(narrow, wide)
	}
	if p.len() < inputs {
		return p, fmt.Errorf("%d frames are too few to learn from", p.len())
	}
	return p, nil
}

// add appends the frames of an utterance, each with its neighbours. It subtracts the means over the utterance, as the
// recogniser does.
func (p *framePairs) add(narrow, wide []float32) {
	frames := min(len(narrow), len(wide)) / cepstra
	narrow, wide = narrow[:frames*cepstra], wide[:frames*cepstra]
	subtractMean(narrow)
	subtractMean(wide)
	for t := range frames {
		for k := t - neighbours; k <= t+neighbours; k++ {
			at := min(max(k, 0), frames-1) * cepstra
			p.in = append(p.in, narrow[at:at+cepstra]...)
		}
	}
	p.out = append(p.out, wide...)
}

// subtractMean subtracts from each coefficient its mean over the frames.
func subtractMean(cep []float32) {
	var mean [cepstra]float64
	for i, v := range cep {
		mean[i%cepstra] += float64(v) / float64(len(cep)/cepstra)
	}
	for i := range cep {
		cep[i] -= float32(mean[i%cepstra])
	}
}
