package speech

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"soniq/internal/intelligence/engine/enginetest"
	"soniq/internal/intelligence/transcript"
)

// heldOutScripts are the scripts that no training pair of the bandwidth network used. The first six are spoken under
// each condition; SONIQ_EVAL_SCRIPTS sets another number, up to 12 (all).
var heldOutScripts = []string{"d01", "d04", "d09", "d10", "d15", "d21", "d24", "d25", "d28", "d31", "d41", "d59"}

// evaluatedScripts returns the ids of the scripts to speak: the first of heldOutScripts, and every second of the
// evaluation set. If all of heldOutScripts are spoken, it returns the whole evaluation set.
func evaluatedScripts() (few, many []string) {
	n, err := strconv.Atoi(os.Getenv("SONIQ_EVAL_SCRIPTS"))
	if err != nil {
		n = 6
	}
	for i := 1; i <= 60; i++ {
		if i%2 == 1 || n >= len(heldOutScripts) {
			many = append(many, fmt.Sprintf("d%02d", i))
		}
	}
	return heldOutScripts[:min(max(n, 1), len(heldOutScripts))], many
}

// condition describes how the calls of one measurement are spoken.
type condition struct {
	name             string
	scripts          []enginetest.Script
	speak            func(t testing.TB, s enginetest.Script, wide bool) spokenCall
	target           string
	ceiling          bool // also measure at 16 kHz: the limit of the acoustic model, which a bandwidth network cannot exceed
	writeTranscripts bool // write the transcripts, with which call memory is evaluated
}

// conditions returns the measured conditions. The voices slt, rms, awb and kal16 spoke the training pairs. Those of
// espeak did not, nor did voices resampled to be faster and higher, or slower and lower. make models does not train
// with the voice of festival, but the network in the tree probably was. A human speaker recorded the prompts.
func conditions(t testing.TB) []condition {
	rms, slt, ked := fliteVoice("rms"), fliteVoice("slt"), festival("ked_diphone")
	fewIDs, manyIDs := evaluatedScripts()
	few, many := enginetest.Scripts(t, fewIDs...), enginetest.Scripts(t, manyIDs...)
	return []condition{
		{name: "8 kHz, prompts that a woman read out", scripts: prompts(t), speak: prompt, target: "≤ 30 %", ceiling: true},
		{name: "8 kHz, scripts that were not trained, a voice of festival", scripts: few, speak: line{caller: ked, agent: ked}.over, target: "≤ 30 %", ceiling: true},
		{name: "8 kHz, the same scripts, trained voices", scripts: few, speak: line{caller: rms, agent: slt}.over, target: "–", ceiling: true},
		{name: "8 kHz, the same, these voices 12 % higher, 10 % lower", scripts: few, speak: line{caller: resampledVoice(rms, 0.9), agent: resampledVoice(slt, 1.12)}.over, target: "≤ 30 %", ceiling: true},
		{name: "8 kHz with noise 20 dB below speech, the same, trained voices", scripts: few, speak: line{caller: rms, agent: slt, noise: 20}.over, target: "–", ceiling: true},
		{name: "8 kHz, the same, two voices of espeak", scripts: few, speak: line{caller: espeak("en-us"), agent: espeak("en-us+f3")}.over, target: "≤ 30 %", ceiling: true},
		{name: "8 kHz, the calls that are searched, most of them trained", scripts: many, speak: line{caller: rms, agent: slt}.over, target: "≤ 26.5 %", writeTranscripts: true},
	}
}

// over speaks a script over the line, in wide band if wide is set.
func (l line) over(t testing.TB, s enginetest.Script, wide bool) spokenCall {
	l.wide = wide
	return l.speak(t, s)
}

// resampledVoice returns a voice whose pitch, formants and tempo are scaled by speed.
func resampledVoice(v voice, speed float64) voice {
	return func(t testing.TB, text string) []float64 {
		x := v(t, text)
		out := make([]float64, int(float64(len(x)-1)/speed))
		for i := range out {
			at := float64(i) * speed
			k := int(at)
			out[i] = x[k] + (at-float64(k))*(x[k+1]-x[k])
		}
		return out
	}
}

// espeak returns a voice of espeak-ng, converted to 16 kHz by sox.
func espeak(name string) voice {
	return func(t testing.TB, text string) []float64 {
		t.Helper()
		return synthesizeWith(t, text, "espeak-ng", "-v", name, "-s", "150", "--stdin", "-w")
	}
}

// festival returns a voice of festival, converted to 16 kHz by sox.
func festival(name string) voice {
	return func(t testing.TB, text string) []float64 {
		t.Helper()
		return synthesizeWith(t, text, "text2wave", "-eval", "(voice_"+name+")", "-o")
	}
}

// synthesizeWith runs a program that reads a text from its standard input and writes the sound into the file of its
// last argument.
func synthesizeWith(t testing.TB, text, program string, args ...string) []float64 {
	t.Helper()
	raw, file := filepath.Join(t.TempDir(), "raw.wav"), filepath.Join(t.TempDir(), "say.wav")
	for _, c := range [][]string{append(append([]string{program}, args...), raw), {"sox", raw, "-r", "16000", "-c", "1", "-b", "16", file, "norm", "-3"}} {
		if _, err := exec.LookPath(c[0]); err != nil {
			t.Fatalf("%s is not installed: scripts/setup eval does it", c[0])
		}
		cmd := exec.Command(c[0], c[1:]...)
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", c[0], err, out)
		}
	}
	return readSpeech(t, file)
}

// TestEvaluateRecognition measures the word error rate and the CPU cost under each condition. It is run by `make
// eval`, because it takes minutes. SONIQ_EVAL_OUT names a file for the transcripts, SONIQ_EVAL_ONLY a part of the
// name of the conditions to run.
func TestEvaluateRecognition(t *testing.T) {
	if os.Getenv("SONIQ_EVAL") == "" {
		t.Skip("set SONIQ_EVAL=1 to run")
	}
	for _, c := range conditions(t) {
		if only := os.Getenv("SONIQ_EVAL_ONLY"); strings.Contains(c.name, only) {
			t.Run(c.name, func(t *testing.T) {
				result := recognizeCondition(t, c, false)
				if c.ceiling {
					c.name += ", at 16 kHz"
					result += "; at 16 kHz: " + recognizeCondition(t, c, true)
				}
				enginetest.EvalRow(t, "word error rate", strings.TrimSuffix(c.name, ", at 16 kHz"), result, c.target)
			})
		}
	}
}

// recognizeCondition recognises the calls of a condition and returns the word error rate as text.
func recognizeCondition(t *testing.T, c condition, wide bool) string {
	s := newEvaluatedRecognizer(t)
	pool := transcript.NewRecognizerPool(s, 2)
	t.Cleanup(pool.Close)
	var heard []recognizedCall
	var words, errors [2]int
	var seconds float64
	for i, sc := range c.scripts {
		call := c.speak(t, sc, wide)
		segments := transcribeLive(t, pool, call)
		seconds += call.seconds
		heard = append(heard, recognizedCall{sc.ID, turnsOf(segments)})
		for side, speaker := range []string{"caller", "agent"} {
			want := sc.Reference(speaker)
			got := recognizedWordsOf(want, segments, side)
			e := wordErrors(want, got)
			words[side] += len(want)
			errors[side] += e
			if os.Getenv("SONIQ_EVAL_SHOW") != "" {
				t.Logf("%s %s %d/%d\n  want %s\n  got  %s", sc.ID, speaker, e, len(want), strings.Join(want, " "), strings.Join(got, " "))
			}
		}
		t.Logf("PROGRESS %s: %d of %d calls, %.0f s spoken, %d errors in %d words", c.name, i+1, len(c.scripts), seconds, errors[0]+errors[1], words[0]+words[1])
		if c.writeTranscripts {
			writeTranscriptsFile(t, heard)
		}
	}
	rate := func(e, n int) float64 { return 100 * float64(e) / float64(max(n, 1)) }
	return fmt.Sprintf("%.1f %% (caller %.1f, agent %.1f; %d words, %.2f CPU-s per s of call)", rate(errors[0]+errors[1], words[0]+words[1]),
		rate(errors[0], words[0]), rate(errors[1], words[1]), words[0]+words[1], workerCPUSeconds(t, s)/seconds)
}

// workerCPUSeconds ends the workers and returns the CPU time they used, without that of flite.
func workerCPUSeconds(t *testing.T, s evaluatedRecognizer) float64 {
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &before); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &after); err != nil {
		t.Fatal(err)
	}
	t.Logf("largest worker %d MB resident", after.Maxrss/1024)
	spent := func(r syscall.Rusage) float64 {
		return float64(r.Utime.Sec+r.Stime.Sec) + float64(r.Utime.Usec+r.Stime.Usec)/1e6
	}
	return spent(after) - spent(before)
}

// recognizedCall is the recognised text of a script, in the format of a script.
type recognizedCall struct {
	ID    string
	Turns []recognizedTurn
}

type recognizedTurn struct{ Speaker, Text string }

func turnsOf(segments []transcript.Segment) []recognizedTurn {
	var out []recognizedTurn
	for _, s := range segments {
		out = append(out, recognizedTurn{string(s.Speaker), s.Text})
	}
	return out
}

func writeTranscriptsFile(t *testing.T, calls []recognizedCall) {
	file := os.Getenv("SONIQ_EVAL_OUT")
	if file == "" {
		return
	}
	b, err := json.MarshalIndent(calls, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
