package speech

import "fmt"

// FrontEnd computes the cepstra that PocketSphinx uses, for programs that train its network. It runs in the calling
// process, unlike the front end of the worker, and is not safe for concurrent use.
type FrontEnd struct {
	sphinx *sphinxDecoder
	half   []float32
}

// NewFrontEnd opens library and model. If one is not installed it returns a *transcript.MissingDependency.
func NewFrontEnd() (*FrontEnd, error) {
	s, err := newSphinxDecoder()
	if err != nil {
		return nil, err
	}
	return &FrontEnd{s, upsampleFilter()}, nil
}

// Wide returns the cepstra of 16 kHz audio: 13 coefficients for each 10 ms, frame after frame.
func (f *FrontEnd) Wide(pcm []int16) ([]float32, error) {
	if len(pcm) < sphinxMinSamples {
		return nil, fmt.Errorf("%d samples are too few for cepstra", len(pcm))
	}
	cep, frames, err := f.sphinx.cepstra(pcm)
	if err != nil {
		return nil, err
	}
	defer f.sphinx.lib.free2D(cep)
	return append([]float32(nil), cepstraAt(cep, int(frames))...), nil
}

// Narrow returns the cepstra of 8 kHz audio as the worker computes them, before bandwidth extension.
func (f *FrontEnd) Narrow(pcm []int16) ([]float32, error) { return f.Wide(upsample(pcm, f.half)) }
