package engine

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

	"soniq/internal/intelligence/transcript"
)

// unheard are the scripts that no training pair of the bandwidth network used. The first six are spoken under each condition;
// SONIQ_EVAL_SCRIPTS says otherwise, 12 are all.
var unheard = []string{"d01", "d04", "d09", "d10", "d15", "d21", "d24", "d25", "d28", "d31", "d41", "d59"}

// bounded are the scripts that are spoken: the first of unheard, and every second of the evaluation set, or all where all of unheard are.
func bounded() (few, many []string) {
	n, err := strconv.Atoi(os.Getenv("SONIQ_EVAL_SCRIPTS"))
	if err != nil {
		n = 6
	}
	for i := 1; i <= 60; i++ {
		if i%2 == 1 || n >= len(unheard) {
			many = append(many, fmt.Sprintf("d%02d", i))
		}
	}
	return unheard[:min(max(n, 1), len(unheard))], many
}

// condition is what calls are recognised under.
type condition struct {
	name    string
	scripts []script
	speak   func(t testing.TB, s script, wide bool) spokenCall
	target  string
	ceiling bool // the same at 16 kHz is recognised too: what the acoustic model makes of it, so the best that a network could reach
	keep    bool // the transcripts are those that memory is evaluated with
}

// conditions are those that are measured. The voices slt, rms, awb and kal16 spoke the training pairs; those of espeak did not,
// nor did voices that are spoken faster and higher, or slower and lower. That of festival is none that make models trains with, but it seems that
// the network in the tree was. The prompts were read out by a human being.
func conditions(t testing.TB) []condition {
	rms, slt, ked := fliteVoice("rms"), fliteVoice("slt"), festival("ked_diphone")
	fewIDs, manyIDs := bounded()
	few, many := scripts(t, fewIDs...), scripts(t, manyIDs...)
	return []condition{
		{name: "8 kHz, prompts that a woman read out", scripts: prompts(t), speak: prompt, target: "≤ 30 %", ceiling: true},
		{name: "8 kHz, scripts that were not trained, a voice of festival", scripts: few, speak: line{caller: ked, agent: ked}.over, target: "≤ 30 %", ceiling: true},
		{name: "8 kHz, the same scripts, trained voices", scripts: few, speak: line{caller: rms, agent: slt}.over, target: "–", ceiling: true},
		{name: "8 kHz, the same, these voices 12 % higher, 10 % lower", scripts: few, speak: line{caller: sped(rms, 0.9), agent: sped(slt, 1.12)}.over, target: "≤ 30 %", ceiling: true},
		{name: "8 kHz with noise 20 dB below speech, the same, trained voices", scripts: few, speak: line{caller: rms, agent: slt, noise: 20}.over, target: "–", ceiling: true},
		{name: "8 kHz, the same, two voices of espeak", scripts: few, speak: line{caller: espeak("en-us"), agent: espeak("en-us+f3")}.over, target: "≤ 30 %", ceiling: true},
		{name: "8 kHz, the calls that are searched, most of them trained", scripts: many, speak: line{caller: rms, agent: slt}.over, target: "≤ 26.5 %", keep: true},
	}
}

// over speaks a script over the line, or over one that carries 16 kHz.
func (l line) over(t testing.TB, s script, wide bool) spokenCall {
	l.wide = wide
	return l.speak(t, s)
}

// sped makes another voice of one: pitch, formants and pace change with the speed.
func sped(v voice, speed float64) voice {
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

// espeak is a voice of espeak-ng, brought to 16 kHz by sox.
func espeak(name string) voice {
	return func(t testing.TB, text string) []float64 {
		t.Helper()
		return made(t, text, "espeak-ng", "-v", name, "-s", "150", "--stdin", "-w")
	}
}

// festival is a voice of festival, brought to 16 kHz by sox.
func festival(name string) voice {
	return func(t testing.TB, text string) []float64 {
		t.Helper()
		return made(t, text, "text2wave", "-eval", "(voice_"+name+")", "-o")
	}
}

// made has a program read a text from its input and write the sound into the file that is its last argument.
func made(t testing.TB, text, program string, args ...string) []float64 {
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
	return recorded(t, file)
}

// TestEvaluateRecognition measures the word error rate under each condition and what it costs. It is run by `make eval`, as it takes
// minutes. SONIQ_EVAL_OUT names a file for the transcripts, SONIQ_EVAL_ONLY part of the name of a condition.
func TestEvaluateRecognition(t *testing.T) {
	if os.Getenv("SONIQ_EVAL") == "" {
		t.Skip("set SONIQ_EVAL=1 to run")
	}
	for _, c := range conditions(t) {
		if only := os.Getenv("SONIQ_EVAL_ONLY"); strings.Contains(c.name, only) {
			t.Run(c.name, func(t *testing.T) {
				result := recognise(t, c, false)
				if c.ceiling {
					c.name += ", at 16 kHz"
					result += "; at 16 kHz: " + recognise(t, c, true)
				}
				evalRow(t, "word error rate", strings.TrimSuffix(c.name, ", at 16 kHz"), result, c.target)
			})
		}
	}
}

// recognise has the calls of a condition recognised, and tells how much of them was not.
func recognise(t *testing.T, c condition, wide bool) string {
	s := measured(t)
	pool := transcript.NewPool(s, 2)
	t.Cleanup(pool.Close)
	var heard []heardCall
	var words, errors [2]int
	var seconds float64
	for i, sc := range c.scripts {
		call := c.speak(t, sc, wide)
		segments := listen(t, pool, call)
		seconds += call.seconds
		heard = append(heard, heardCall{sc.ID, turnsOf(segments)})
		for side, speaker := range []string{"caller", "agent"} {
			want := sc.reference(speaker)
			got := saidBy(want, segments, side)
			e := wordErrors(want, got)
			words[side] += len(want)
			errors[side] += e
			if os.Getenv("SONIQ_EVAL_SHOW") != "" {
				t.Logf("%s %s %d/%d\n  want %s\n  got  %s", sc.ID, speaker, e, len(want), strings.Join(want, " "), strings.Join(got, " "))
			}
		}
		t.Logf("PROGRESS %s: %d of %d calls, %.0f s spoken, %d errors in %d words", c.name, i+1, len(c.scripts), seconds, errors[0]+errors[1], words[0]+words[1])
		if c.keep {
			keep(t, heard)
		}
	}
	rate := func(e, n int) float64 { return 100 * float64(e) / float64(max(n, 1)) }
	return fmt.Sprintf("%.1f %% (caller %.1f, agent %.1f; %d words, %.2f CPU-s per s of call)", rate(errors[0]+errors[1], words[0]+words[1]),
		rate(errors[0], words[0]), rate(errors[1], words[1]), words[0]+words[1], childSeconds(t, s)/seconds)
}

// childSeconds ends the workers and returns the processor time they used beyond flite's.
func childSeconds(t *testing.T, s ears) float64 {
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

// heardCall is what was recognised of a script, in the form of one.
type heardCall struct {
	ID    string
	Turns []heardTurn
}

type heardTurn struct{ Speaker, Text string }

func turnsOf(segments []transcript.Segment) []heardTurn {
	var out []heardTurn
	for _, s := range segments {
		out = append(out, heardTurn{string(s.Speaker), s.Text})
	}
	return out
}

func keep(t *testing.T, calls []heardCall) {
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
