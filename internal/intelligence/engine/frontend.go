package engine

import "fmt"

// FrontEnd computes the cepstra that the recogniser works with, for programs that train its network. It runs in the process, where the worker
// has one of its own, and is not safe for concurrent use.
type FrontEnd struct {
	sphinx *sphinx
	half   []float32
}

// NewFrontEnd opens library and model. What is missing is a *transcript.Missing.
func NewFrontEnd() (*FrontEnd, error) {
	s, err := newSphinx()
	if err != nil {
		return nil, err
	}
	return &FrontEnd{s, upsampleFilter()}, nil
}

// Wide computes the cepstra of 16 kHz audio, 13 for each 10 ms, one frame after the other.
func (f *FrontEnd) Wide(pcm []int16) ([]float32, error) {
	if len(pcm) < sphinxMinimum {
		return nil, fmt.Errorf("%d samples are too few for cepstra", len(pcm))
	}
	cep, frames, err := f.sphinx.cepstra(pcm)
	if err != nil {
		return nil, err
	}
	defer f.sphinx.lib.free2D(cep)
	return append([]float32(nil), cepstraAt(cep, int(frames))...), nil
}

// Narrow computes the cepstra of 8 kHz audio as the worker does, before they are extended.
func (f *FrontEnd) Narrow(pcm []int16) ([]float32, error) { return f.Wide(upsample(pcm, f.half)) }
