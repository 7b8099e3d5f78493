package speech

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"soniq/internal/intelligence/transcript"
)

const (
	sherpaEngine     = "sherpa-onnx"
	sherpaRate       = 16000 // samples per second that models expect unless they specify another rate; the library resamples then
	sherpaFeatures   = 80    // per frame, unless the model specifies another number
	sherpaMinSamples = sherpaRate / 10
)

// sherpaDecoder is a recogniser with its model. It is used in the worker process only and is not safe for concurrent
// use.
type sherpaDecoder struct {
	lib        *sherpaLibrary
	model      sherpaModel
	recogniser uintptr
	threads    int
	language   string // the configured language
}

// newSherpaDecoder opens library and model. How long it takes depends on the model.
func newSherpaDecoder(dir, folder string, threads int) (*sherpaDecoder, error) {
	model, err := findSherpaModel(dir)
	if err != nil {
		return nil, err
	}
	lib, err := loadSherpa(folder, dir)
	if err != nil {
		return nil, err
	}
	d := &sherpaDecoder{lib: lib, model: model, threads: threads}
	d.withConfig("", func(c unsafe.Pointer) { d.recogniser = lib.open(c) })
	if d.recogniser == 0 {
		return nil, &transcript.MissingDependency{Problem: "sherpa-onnx could not open the model in " + dir,
			Remedy: "unpack the model again, all of its files"}
	}
	return d, nil
}

// withConfig passes the configuration for a language to use.
func (d *sherpaDecoder) withConfig(language string, use func(unsafe.Pointer)) {
	var texts cStrings
	defer texts.release()
	config := d.model.config(&texts, d.threads, language)
	use(unsafe.Pointer(config))
	runtime.KeepAlive(config)
	d.language = language
}

// setLanguage configures the language, if the model supports it.
func (d *sherpaDecoder) setLanguage(language string) {
	language = transcript.BaseLanguage(language)
	if language != d.language && slices.Contains(d.model.languages, language) {
		d.withConfig(language, func(c unsafe.Pointer) { d.lib.configure(d.recogniser, c) })
	}
}

// decodeClip recognises 16 kHz audio.
func (d *sherpaDecoder) decodeClip(pcm []int16, language string) (sherpaResult, error) {
	if len(pcm) < sherpaMinSamples {
		return sherpaResult{}, nil
	}
	d.setLanguage(language)
	samples := make([]float32, len(pcm))
	for i, v := range pcm {
		samples[i] = float32(v) / 32768
	}
	return d.decode(samples)
}

// decode recognises samples; 1 is full scale.
func (d *sherpaDecoder) decode(samples []float32) (sherpaResult, error) {
	stream := d.lib.stream(d.recogniser)
	if stream == 0 {
		return sherpaResult{}, fmt.Errorf("sherpa-onnx gave no stream")
	}
	defer d.lib.destroyStream(stream)
	d.lib.accept(stream, sherpaRate, unsafe.Pointer(&samples[0]), int32(len(samples)))
	runtime.KeepAlive(samples)
	d.lib.decode(d.recogniser, stream)
	return d.read(stream)
}

// read returns the result of a stream. It uses the library's JSON form, because that is the same in all releases and
// the C structure is not.
func (d *sherpaDecoder) read(stream uintptr) (r sherpaResult, err error) {
	text := d.lib.result(stream)
	if text == 0 {
		return r, fmt.Errorf("sherpa-onnx gave no result")
	}
	defer d.lib.destroyResult(text)
	if err := json.Unmarshal(printable(cText(text)), &r); err != nil {
		return r, fmt.Errorf("read what sherpa-onnx understood: %w", err)
	}
	return r, nil
}

// cText copies a C string.
func cText(at uintptr) []byte {
	n := 0
	for *(*byte)(unsafe.Add(pointer(at), n)) != 0 {
		n++
	}
	return slices.Clone(unsafe.Slice((*byte)(pointer(at)), n))
}

// printable replaces control characters, which the library leaves in its texts and JSON does not allow.
func printable(b []byte) []byte {
	for i, c := range b {
		if c < ' ' {
			b[i] = ' '
		}
	}
	return b
}
