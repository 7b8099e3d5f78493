package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// heldOut lists the calls with which recognition is evaluated: they are excluded from training.
const heldOut = "d01,d04,d09,d10,d15,d21,d24,d25,d28,d31,d41,d59"

// readTexts reads the text of each call of a set, except those in without.
func readTexts(file, without string) ([]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read calls to be spoken: %w", err)
	}
	var set struct {
		Docs []struct {
			ID    string
			Turns []struct{ Text string }
		}
	}
	if err := json.Unmarshal(b, &set); err != nil {
		return nil, fmt.Errorf("read calls to be spoken: %w", err)
	}
	out := []string{}
	for _, d := range set.Docs {
		if strings.Contains(","+without+",", ","+d.ID+",") {
			continue
		}
		var said []string
		for _, t := range d.Turns {
			said = append(said, t.Text)
		}
		out = append(out, strings.Join(said, " "))
	}
	return out, nil
}

// synthesize returns a text spoken by a voice of flite: 16 kHz samples, peak at -3 dB.
func synthesize(voice, text string) ([]float64, error) {
	dir, err := os.MkdirTemp("", "speak")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "said.wav")
	if out, err := exec.Command("flite", "-voice", voice, "-t", text, "-o", file).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("speak with %s: %w: %s", voice, err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(b) < 44 || binary.LittleEndian.Uint32(b[24:]) != 16000 {
		return nil, fmt.Errorf("voice %s does not speak at 16 kHz", voice)
	}
	x, peak := make([]float64, (len(b)-44)/2), 1.0
	for i := range x {
		x[i] = float64(int16(binary.LittleEndian.Uint16(b[44+2*i:])))
		peak = max(peak, math.Abs(x[i]))
	}
	for i := range x {
		x[i] *= 32767 * 0.708 / peak
	}
	return x, nil
}

// resampled plays samples faster and higher, or slower and lower.
func resampled(x []float64, speed float64) []float64 {
	out := make([]float64, int(float64(len(x)-1)/speed))
	for i := range out {
		at := float64(i) * speed
		k := int(at)
		out[i] = x[k] + (at-float64(k))*(x[k+1]-x[k])
	}
	return out
}

// withNoise adds noise at a level in dB below the speech.
func withNoise(x []float64, below float64, r *rand.Rand) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	level := math.Sqrt(sum/float64(max(len(x), 1))) * math.Pow(10, -below/20)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v + level*r.NormFloat64()
	}
	return out
}

// telephone converts 16 kHz speech to 8 kHz through G.711. Frequencies below low Hz are removed; 0 keeps all.
func telephone(x []float64, low float64) []int16 {
	const taps = 127
	high := 3500.0
	if low == 0 {
		high = 3900
	}
	h := make([]float64, 2*taps+1)
	for i := range h {
		t := float64(i - taps)
		sinc := func(f float64) float64 {
			if t == 0 {
				return 2 * f
			}
			return math.Sin(2*math.Pi*f*t) / (math.Pi * t)
		}
		window := 0.42 + 0.5*math.Cos(math.Pi*t/(taps+1)) + 0.08*math.Cos(2*math.Pi*t/(taps+1))
		h[i] = (sinc(high/16000) - sinc(low/16000)) * window
	}
	out := make([]int16, len(x)/2)
	for i := range out {
		sum := 0.0
		for k, c := range h {
			if j := 2*i + k - taps; j >= 0 && j < len(x) {
				sum += c * x[j]
			}
		}
		out[i] = muLaw(int16(min(max(sum, -32768), 32767)))
	}
	return out
}

// muLaw returns a sample after encoding and decoding with ITU-T G.711 µ-law.
func muLaw(v int16) int16 {
	x, sign := int(v), 1
	if x < 0 {
		x, sign = -x, -1
	}
	x = min(x, 32635) + 132
	e := 7
	for m := 0x4000; e > 0 && x&m == 0; m >>= 1 {
		e--
	}
	step := x >> (e + 3) & 15
	return int16(sign * ((step<<3+132)<<e - 132))
}

// rounded converts samples to integers.
func rounded(x []float64) []int16 {
	out := make([]int16, len(x))
	for i, v := range x {
		out[i] = int16(min(max(v, -32768), 32767))
	}
	return out
}
