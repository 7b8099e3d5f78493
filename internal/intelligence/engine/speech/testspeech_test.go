package speech

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"soniq/internal/intelligence/engine/enginetest"
	"soniq/internal/intelligence/transcript"
)

// TestMain runs the worker processes of the engines if the test binary is started as one, as the real binary does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "asr-worker" {
		os.Exit(RunSphinxWorker(os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == "sherpa-worker" {
		os.Exit(RunSherpaWorker(os.Args[2:], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == "sherpa-layout" {
		printLayout(os.Args[2])
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "tts-worker" {
		os.Exit(RunFliteWorker(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// spokenCall is a script spoken by two voices through G.711: interleaved mu-law, caller first, 8 kHz.
type spokenCall struct {
	enginetest.Script
	audio   []byte
	seconds float64
	format  transcript.Format
}

var muLawStereo = transcript.Format{Encoding: transcript.PCMU, Rate: 8000, Channels: 2}

// speak returns a script spoken by two flite voices over a narrow-band line.
func speak(t testing.TB, s enginetest.Script, callerVoice, agentVoice string) spokenCall {
	t.Helper()
	return line{caller: fliteVoice(callerVoice), agent: fliteVoice(agentVoice)}.speak(t, s)
}

// voice returns a text as speech: 16 kHz samples.
type voice func(t testing.TB, text string) []float64

func fliteVoice(name string) voice {
	return func(t testing.TB, text string) []float64 { return flite(t, name, text) }
}

// line is the audio quality of a call.
type line struct {
	caller, agent voice
	wide          bool    // 16 kHz, as G.722 and Opus bring it; else G.711
	noise         float64 // below speech, dB; 0: none
}

// speak speaks a script, with half a second of silence before and after and 0.4 s between the turns.
func (l line) speak(t testing.TB, s enginetest.Script) spokenCall {
	t.Helper()
	var sides [2][]float64
	pad := func(seconds float64) {
		n := int(seconds * 16000)
		for c := range sides {
			sides[c] = append(sides[c], make([]float64, n)...)
		}
	}
	pad(0.5)
	for _, turn := range s.Turns {
		say, c := l.agent, 1
		if turn.Speaker == "caller" {
			say, c = l.caller, 0
		}
		pcm := say(t, turn.Text)
		sides[c] = append(sides[c], pcm...)
		sides[1-c] = append(sides[1-c], make([]float64, len(pcm))...)
		pad(0.4)
	}
	pad(0.5)
	if l.noise > 0 {
		for c := range sides {
			addNoise(sides[c], l.noise, uint64(c))
		}
	}
	call := spokenCall{Script: s, seconds: float64(len(sides[0])) / 16000, format: muLawStereo}
	if l.wide {
		call.format = transcript.Format{Encoding: transcript.PCM16, Rate: 16000, Channels: 2}
		for i := range sides[0] {
			for c := range sides {
				call.audio = binary.LittleEndian.AppendUint16(call.audio, uint16(int16(min(max(sides[c][i], -32768), 32767))))
			}
		}
		return call
	}
	low, high := telephone(sides[0]), telephone(sides[1])
	for i := range low {
		call.audio = append(call.audio, encodeMuLaw(low[i]), encodeMuLaw(high[i]))
	}
	return call
}

// addNoise adds noise at a level in dB below the speech.
func addNoise(x []float64, below float64, seed uint64) {
	sum, n := 0.0, 0
	for _, v := range x {
		if v != 0 {
			sum, n = sum+v*v, n+1
		}
	}
	r := rand.New(rand.NewPCG(seed, 5))
	level := math.Sqrt(sum/float64(max(n, 1))) * math.Pow(10, -below/20)
	for i := range x {
		x[i] += level * r.NormFloat64()
	}
}

// flite speaks a text and returns 16 kHz samples with their peak at -3 dB. The test is skipped if flite is not
// installed.
func flite(t testing.TB, voice, text string) []float64 {
	t.Helper()
	if _, err := exec.LookPath("flite"); err != nil {
		t.Skip("flite is not installed")
	}
	file := filepath.Join(t.TempDir(), "say.wav")
	if out, err := exec.Command("flite", "-voice", voice, "-t", text, "-o", file).CombinedOutput(); err != nil {
		t.Fatalf("flite: %v: %s", err, out)
	}
	return readSpeech(t, file)
}

// readSpeech reads a 16 kHz file and scales its peak to -3 dB.
func readSpeech(t testing.TB, file string) []float64 {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rate := binary.LittleEndian.Uint32(b[24:])
	if rate != 16000 {
		t.Fatalf("%s is at %d Hz", file, rate)
	}
	var peak float64
	out := make([]float64, (len(b)-44)/2)
	for i := range out {
		out[i] = float64(int16(binary.LittleEndian.Uint16(b[44+2*i:])))
		peak = max(peak, math.Abs(out[i]))
	}
	for i := range out {
		out[i] *= 32767 * 0.708 / max(peak, 1)
	}
	return out
}

// telephone limits 16 kHz audio to 250-3500 Hz and halves its rate.
func telephone(x []float64) []int16 {
	const taps = 127
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
		h[i] = (sinc(3500.0/16000) - sinc(250.0/16000)) * window
	}
	out := make([]int16, len(x)/2)
	sounds := make([]int, len(x)+1) // samples that are not zero, so far
	for i, v := range x {
		sounds[i+1] = sounds[i]
		if v != 0 {
			sounds[i+1]++
		}
	}
	for i := range out {
		if sounds[min(2*i+taps+1, len(x))] == sounds[max(2*i-taps, 0)] {
			continue
		}
		sum := 0.0
		for k, c := range h {
			if j := 2*i + k - taps; j >= 0 && j < len(x) {
				sum += c * x[j]
			}
		}
		out[i] = int16(min(max(sum, -32768), 32767))
	}
	return out
}

// encodeMuLaw encodes a sample as ITU-T G.711 µ-law.
func encodeMuLaw(v int16) byte {
	x, sign := int(v), byte(0)
	if x < 0 {
		x, sign = -x, 0x80
	}
	x = min(x, 32635) + 132
	e := 7
	for m := 0x4000; e > 0 && x&m == 0; m >>= 1 {
		e--
	}
	return ^(sign | byte(e<<4) | byte(x>>(e+3)&15))
}

// wordErrors returns the edit distance between two word sequences.
func wordErrors(want, got []string) int {
	row := make([]int, len(got)+1)
	for j := range row {
		row[j] = j
	}
	for i, w := range want {
		diagonal := row[0]
		row[0] = i + 1
		for j, g := range got {
			cost := diagonal
			if w != g {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(got)]
}

// recognizedWords returns the words that were recognised on one channel.
func recognizedWords(segments []transcript.Segment, channel int) []string {
	var all []string
	for _, s := range segments {
		if s.Channel != channel {
			continue
		}
		for _, w := range s.Words {
			all = append(all, enginetest.NormalizedWords(w.Text)...)
		}
	}
	return all
}
