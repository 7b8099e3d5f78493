package speech

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"soniq/internal/intelligence/transcript"
)

const (
	sphinxRate       = 16000
	cepstra          = 13 // coefficients per frame of the model's front end
	sphinxFrameMS    = 10
	sphinxMinSamples = sphinxRate / 10 // shorter clips hold no word
	sphinxModel      = "en-us-ptm"
	sphinxVersion    = "0.8+5prealpha"
	sphinxEngine     = "pocketsphinx"
	bandwidthModel   = "+bandwidth-extension"
)

// sphinxDecoder is a pocketsphinx decoder. It is used in the worker process only and is not safe for concurrent use.
type sphinxDecoder struct {
	lib       *sphinxLibrary
	ps        uintptr
	bandwidth *BandwidthExtension

	terms   *termSearches
	lexicon *fliteLexicon // nil: words that are not in the dictionary have no pronunciation
}

// newSphinxDecoder opens library, model and bandwidth extension; it takes about a quarter of a second.
func newSphinxDecoder() (*sphinxDecoder, error) {
	lib, err := loadSphinx()
	if err != nil {
		return nil, err
	}
	s := &sphinxDecoder{lib: lib, bandwidth: loadBandwidthExtension(), lexicon: loadFliteLexicon()}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// open opens the decoder of the C library.
func (s *sphinxDecoder) open() error {
	model, err := findModel()
	if err != nil {
		return err
	}
	if s.ps, err = s.lib.openDecoder(model); err != nil {
		return err
	}
	s.terms, err = newTermSearches(s.lib, s.ps)
	return err
}

// answer recognises 16 kHz audio with the phrases and terms of a request.
func (s *sphinxDecoder) answer(q sphinxRequest, pcm []int16) ([]transcript.Word, error) {
	return s.withTerms(q.Terms, func() ([]transcript.Word, error) {
		return s.withPhrases(q.Phrases, func() ([]transcript.Word, error) { return s.decode(pcm, q.Narrow) })
	})
}

// decode recognises 16 kHz audio. Narrow-band audio is bandwidth-extended first: the model was trained with speech up
// to 8 kHz and recognises little without the upper half.
func (s *sphinxDecoder) decode(pcm []int16, narrow bool) ([]transcript.Word, error) {
	if len(pcm) < sphinxMinSamples {
		return nil, nil
	}
	process := s.processRaw
	if narrow {
		process = s.processExtended
	}
	if err := process(pcm); err != nil {
		return nil, err
	}
	return s.words(), nil
}

func (s *sphinxDecoder) processRaw(pcm []int16) error {
	if s.lib.startUtt(s.ps) < 0 {
		return fmt.Errorf("pocketsphinx could not start an utterance")
	}
	n := s.lib.processRaw(s.ps, unsafe.Pointer(&pcm[0]), uintptr(len(pcm)), 0, 1)
	runtime.KeepAlive(pcm)
	return s.end(n)
}

// processExtended computes the cepstra with the decoder's own front end, extends them in place and decodes them.
func (s *sphinxDecoder) processExtended(pcm []int16) error {
	cep, frames, err := s.cepstra(pcm)
	if err != nil {
		return err
	}
	defer s.lib.free2D(cep)
	if frames < 5 {
		return nil
	}
	s.bandwidth.Extend(cepstraAt(cep, int(frames)))
	if s.lib.startUtt(s.ps) < 0 {
		return fmt.Errorf("pocketsphinx could not start an utterance")
	}
	return s.end(s.lib.processCep(s.ps, cep, frames, 0, 1))
}

// cepstra computes the cepstra of 16 kHz audio. The result is C memory that the caller must free with free2D.
func (s *sphinxDecoder) cepstra(pcm []int16) (cep uintptr, frames int32, err error) {
	fe := s.lib.frontEnd(s.ps)
	s.lib.startFE(fe)
	s.lib.startFEUtt(fe)
	n := s.lib.features(fe, unsafe.Pointer(&pcm[0]), uintptr(len(pcm)), unsafe.Pointer(&cep), unsafe.Pointer(&frames))
	runtime.KeepAlive(pcm)
	if n < 0 {
		return 0, 0, fmt.Errorf("pocketsphinx could not compute features")
	}
	return cep, frames, nil
}

func (s *sphinxDecoder) end(processed int32) error {
	if s.lib.endUtt(s.ps) < 0 || processed < 0 {
		return fmt.Errorf("pocketsphinx could not decode the audio")
	}
	return nil
}

// cepstraAt returns a C array of row pointers, whose rows are contiguous, as one slice without copying.
func cepstraAt(rows uintptr, frames int) []float32 {
	first := *(**float32)(pointer(rows))
	return unsafe.Slice(first, frames*cepstra)
}

// pointer converts an address of C memory, which the garbage collector does not manage, to a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// words returns the best hypothesis with times and posterior probabilities, without fillers and pronunciation marks.
func (s *sphinxDecoder) words() []transcript.Word {
	var out []transcript.Word
	logmath := s.lib.logmath(s.ps)
	for seg := s.lib.segments(s.ps); seg != 0; seg = s.lib.segNext(seg) {
		text := s.lib.segWord(seg)
		if text == "" || strings.ContainsAny(text[:1], "<[+(") {
			continue
		}
		text, _, _ = strings.Cut(text, "(")
		var from, to int32
		s.lib.segFrames(seg, unsafe.Pointer(&from), unsafe.Pointer(&to))
		out = append(out, transcript.Word{
			Text:       text,
			StartMS:    int(from) * sphinxFrameMS,
			EndMS:      int(to+1) * sphinxFrameMS,
			Confidence: min(s.lib.exp(logmath, s.lib.segProb(seg, 0, 0, 0)), 1),
		})
	}
	return out
}
