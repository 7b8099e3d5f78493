// Package sherpatest makes a speech model for tests of sherpa-onnx: it recognises two tones as two words. It proves
// that audio goes in and words with times come out. It does not measure the accuracy of real models.
package sherpatest

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Frequencies of the tones for "low" and "high", in hertz.
const (
	Low  = 500
	High = 1500
)

const (
	bins        = 80 // number of mel filters that models expect, from 20 (NeMo 0) to 7600 (8000) hertz
	words       = 3  // no word, low, high
	subsampling = 4  // one of so many frames of 10 ms is used
	// Minimum distance of one tone above the other, so that it is not silence, as the logarithm of the ratio of their
	// energies.
	minContrast = 4
)

// Model writes a model of the family Zipformer CTC into a folder. about is added to its metadata.
func Model(t testing.TB, dir string, about map[string]string) {
	t.Helper()
	ctc(t, dir, toneScores(kaldi, minContrast), about, map[string]string{"model_type": "zipformer2_ctc", "version": "1",
		"comment": "tones for tests"})
}

// WeNet writes a model of the family WeNet CTC into a folder. It receives unscaled samples, in which the clicks at
// the start and end of tones are not silent: a tone must stand out more.
func WeNet(t testing.TB, dir string) {
	t.Helper()
	ctc(t, dir, toneScores(kaldi, 3*minContrast), map[string]string{"model_type": "wenet_ctc", "vocab_size": "3",
		"subsampling_factor": "4"})
}

// NeMo writes a CTC model of NeMo into a folder: it has a different filter bank, and its input has the bins before
// the frames.
func NeMo(t testing.TB, dir string) {
	t.Helper()
	g := toneScores(slaney, minContrast)
	g.inputs[0] = value("turned", float32s, 0, bins, 0)
	g.nodes = append([]message{node("Transpose", []string{"turned"}, []string{"x"}, map[string][]int64{"perm": {0, 2, 1}})}, g.nodes...)
	ctc(t, dir, g, map[string]string{"model_type": "EncDecCTCModelBPE", "vocab_size": "2", "subsampling_factor": "4", "normalize_type": ""})
}

// Transducer writes a transducer model: an encoder that recognises tones, a decoder that forbids the previous word,
// and a joiner that adds both.
func Transducer(t testing.TB, dir string) {
	t.Helper()
	encoder := toneScores(kaldi, minContrast)
	encoder.outputs = []message{value("scores", float32s, 0, 0, words), value("lengths", int64s, 0)}
	never := float32(-100)
	decoder := graph{
		nodes: []message{node("Gather", []string{"after", "said"}, []string{"row"}, nil),
			node("Squeeze", []string{"row", "one"}, []string{"allowed"}, nil)},
		constants: []message{floats("after", []float32{0, 0, 0, 0, never, 0, 0, 0, never}, words, words), integers("one", 1)},
		inputs:    []message{value("said", int64s, 0, 1)},
		outputs:   []message{value("allowed", float32s, 0, words)},
	}
	joiner := graph{
		nodes:   []message{node("Add", []string{"heard", "allowed"}, []string{"word"}, nil)},
		inputs:  []message{value("heard", float32s, 0, words), value("allowed", float32s, 0, words)},
		outputs: []message{value("word", float32s, 0, words)},
	}
	writeFile(t, filepath.Join(dir, "encoder-tones.onnx"), encoder.model(map[string]string{"model_type": "zipformer2"}))
	writeFile(t, filepath.Join(dir, "decoder-tones.onnx"), decoder.model(map[string]string{"vocab_size": "3", "context_size": "1"}))
	writeFile(t, filepath.Join(dir, "joiner-tones.onnx"), joiner.model(map[string]string{"joiner_dim": "3"}))
	writeFile(t, filepath.Join(dir, "tokens.txt"), []byte("<blk> 0\n▁low 1\n▁high 2\n"))
}

// ctc writes a model that returns the probabilities of words in each frame, and its metadata. If a key is given more
// than once, the first counts.
func ctc(t testing.TB, dir string, g graph, about ...map[string]string) {
	g.nodes = append(g.nodes, node("LogSoftmax", []string{"scores"}, []string{"log_probs"}, map[string][]int64{"axis": {2}}))
	g.outputs = []message{value("log_probs", float32s, 0, 0, words), value("lengths", int64s, 0)}
	says := map[string]string{}
	for _, more := range slices.Backward(about) {
		maps.Copy(says, more)
	}
	writeFile(t, filepath.Join(dir, "model.onnx"), g.model(says))
	writeFile(t, filepath.Join(dir, "tokens.txt"), []byte("<blk> 0\n▁low 1\n▁high 2\n"))
}

// toneScores returns a graph that gives each word a score in every fourth frame: the energy of its tone above that of
// the other, on average over three bins of the filter bank around each. "No word" has the score of silence.
func toneScores(mel func(hertz float64) float64, clear float32) graph {
	weights := make([]float32, bins*words)
	for _, d := range []int{-1, 0, 1} {
		low, high := bin(mel, Low)+d, bin(mel, High)+d
		weights[low*words+1], weights[high*words+1] = 1./3, -1./3
		weights[low*words+2], weights[high*words+2] = -1./3, 1./3
	}
	return graph{
		nodes: []message{
			node("MatMul", []string{"x", "weights"}, []string{"contrast"}, nil),
			node("Add", []string{"contrast", "bias"}, []string{"each"}, nil),
			node("Slice", []string{"each", "from", "to", "axis", "step"}, []string{"scores"}, nil),
			node("Add", []string{"x_lens", "up"}, []string{"rounded"}, nil),
			node("Div", []string{"rounded", "step"}, []string{"lengths"}, nil),
		},
		constants: []message{
			floats("weights", weights, bins, words), floats("bias", []float32{clear, 0, 0}, words),
			integers("from", 0), integers("to", math.MaxInt64), integers("axis", 1), integers("step", subsampling),
			integers("up", subsampling-1),
		},
		inputs: []message{value("x", float32s, 0, 0, bins), value("x_lens", int64s, 0)},
	}
}

// Scales of the filter banks: the position of a frequency in Kaldi's, and in NeMo's.
func kaldi(hertz float64) float64 { return 1127 * math.Log(1+hertz/700) }

func slaney(hertz float64) float64 {
	if hertz < 1000 {
		return hertz * 3 / 200
	}
	return 15 + 27*math.Log(hertz/1000)/math.Log(6.4)
}

// bin returns the bin of a filter bank with the centre nearest to a frequency.
func bin(mel func(float64) float64, hertz float64) int {
	from, to := mel(20), mel(7600)
	width := (to - from) / (bins + 1)
	return int(math.Round((mel(hertz)-from)/width)) - 1
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Library returns the folder of the library: SONIQ_SHERPA, or the folder into which scripts/setup installs it. If it
// is not there the test is skipped: it is installed on Linux on x64 only.
func Library(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("SONIQ_SHERPA"); dir != "" {
		return dir
	}
	dir := filepath.Join(root(t), "e2e", "node", "node_modules", "sherpa-onnx-linux-x64")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("sherpa-onnx is not installed: scripts/setup test does it, on Linux on x64")
	}
	return dir
}

// root returns the folder of the repository, by searching upwards from the working directory.
func root(t testing.TB) string {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			err = os.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("the folder of the repository: ", err)
	return ""
}

// Melody returns tones one after another, each in hertz and milliseconds, at a rate in samples per second; 0 hertz is
// silence.
func Melody(rate int, tones [][2]int) []int16 {
	var pcm []int16
	for _, tone := range tones {
		for i := range tone[1] * rate / 1000 {
			pcm = append(pcm, int16(8000*math.Sin(2*math.Pi*float64(tone[0]*i)/float64(rate))))
		}
	}
	return pcm
}
