// Package sherpatest makes a speech model for tests of sherpa-onnx: it understands two words of a language of tones. It
// proves that audio goes in and words with times come out; how well real models hear it cannot tell.
package sherpatest

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The tones that mean "low" and "high", in hertz.
const (
	Low  = 500
	High = 1500
)

const (
	bins        = 80 // of the mel filter bank that models of this family hear, from 20 to 7600 hertz
	words       = 3  // no word, low, high
	subsampling = 4  // frames of 10 ms of which one is looked at
	// How far one tone must stand above the other to be no silence, as the logarithm of their energies' ratio.
	clear = 4
)

// Model writes a model of the family Zipformer CTC into a folder: a linear map from three bins around each tone to its word.
// about is added to what it says about itself.
func Model(t testing.TB, dir string, about map[string]string) {
	t.Helper()
	weights := make([]float32, bins*words)
	for _, d := range []int{-1, 0, 1} {
		low, high := bin(Low)+d, bin(High)+d
		weights[low*words+1], weights[high*words+1] = 1./3, -1./3
		weights[low*words+2], weights[high*words+2] = -1./3, 1./3
	}
	g := graph{
		nodes: []message{
			node("MatMul", []string{"x", "weights"}, []string{"contrast"}, nil),
			node("Add", []string{"contrast", "bias"}, []string{"scores"}, nil),
			node("Slice", []string{"scores", "from", "to", "axis", "step"}, []string{"fewer"}, nil),
			node("LogSoftmax", []string{"fewer"}, []string{"log_probs"}, map[string]int64{"axis": 2}),
			node("Add", []string{"x_lens", "up"}, []string{"rounded"}, nil),
			node("Div", []string{"rounded", "step"}, []string{"log_probs_len"}, nil),
		},
		constants: []message{
			floats("weights", weights, bins, words), floats("bias", []float32{clear, 0, 0}, words),
			integers("from", 0), integers("to", math.MaxInt64), integers("axis", 1), integers("step", subsampling), integers("up", subsampling-1),
		},
		inputs:  []message{value("x", float32s, 0, 0, bins), value("x_lens", int64s, 0)},
		outputs: []message{value("log_probs", float32s, 0, 0, words), value("log_probs_len", int64s, 0)},
	}
	says := map[string]string{"model_type": "zipformer2_ctc", "version": "1", "comment": "tones for tests"}
	maps.Copy(says, about)
	write(t, filepath.Join(dir, "model.onnx"), g.model(says))
	write(t, filepath.Join(dir, "tokens.txt"), []byte("<blk> 0\n▁low 1\n▁high 2\n"))
}

// bin is the bin of the filter bank whose middle is next to a frequency.
func bin(hertz float64) int {
	mel := func(f float64) float64 { return 1127 * math.Log(1+f/700) }
	width := (mel(7600) - mel(20)) / (bins + 1)
	return int(math.Round((mel(hertz)-mel(20))/width)) - 1
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Library is the folder of the library: SONIQ_SHERPA, or where scripts/setup installs it. Where it is not there the test is left
// out: it is installed on Linux on x64 only.
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

// root is the folder of the repository, in which tests run somewhere.
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

// Melody plays tones one after another, each hertz and milliseconds, at a rate in samples per second; 0 hertz is silence.
func Melody(rate int, tones [][2]int) []int16 {
	var pcm []int16
	for _, tone := range tones {
		for i := range tone[1] * rate / 1000 {
			pcm = append(pcm, int16(8000*math.Sin(2*math.Pi*float64(tone[0]*i)/float64(rate))))
		}
	}
	return pcm
}
