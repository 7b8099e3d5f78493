package ai

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"soniq/transcript"
)

// TestEvaluateRecognition measures the word error rate over the whole evaluation set and what it costs. It is
// run by hand (SONIQ_EVAL=1), as it takes minutes. SONIQ_EVAL_OUT names a file for the transcripts.
func TestEvaluateRecognition(t *testing.T) {
	if os.Getenv("SONIQ_EVAL") == "" {
		t.Skip("set SONIQ_EVAL=1 to run")
	}
	var ids []string
	if list := os.Getenv("SONIQ_EVAL_IDS"); list != "" {
		ids = strings.Split(list, ",")
	}
	s := newTestSphinx(t, 2)
	pool := transcript.NewPool(s, 2)
	t.Cleanup(pool.Close)
	voices := strings.Split(os.Getenv("SONIQ_EVAL_VOICES"), ",")
	if len(voices) < 2 {
		voices = []string{"rms", "slt"}
	}
	var heard []heardCall
	var words, errors [2]int
	var seconds, took float64
	for _, sc := range scripts(t, ids...) {
		call := speak(t, sc, voices[0], voices[1])
		began := time.Now()
		segments := listen(t, pool, call)
		took += time.Since(began).Seconds()
		seconds += call.seconds
		heard = append(heard, heardCall{sc.ID, turnsOf(segments)})
		for c, speaker := range []string{"caller", "agent"} {
			want := sc.reference(speaker)
			got := said(segments, c)
			e := wordErrors(want, got)
			words[c] += len(want)
			errors[c] += e
			if os.Getenv("SONIQ_EVAL_SHOW") != "" {
				t.Logf("%s %s %d/%d\n  want %s\n  got  %s", sc.ID, speaker, e, len(want), strings.Join(want, " "), strings.Join(got, " "))
			}
		}
	}
	keep(t, heard)
	cpu := childSeconds(t, s)
	for c, speaker := range []string{"caller", "agent"} {
		t.Logf("%s: word error rate %.1f %% of %d words", speaker, 100*float64(errors[c])/float64(words[c]), words[c])
	}
	t.Logf("all: word error rate %.1f %%; %.0f s of calls, %.0f s wall, %.3f CPU-seconds per second of call",
		100*float64(errors[0]+errors[1])/float64(words[0]+words[1]), seconds, took, cpu/seconds)
}

// childSeconds ends the workers and returns the processor time they used beyond flite's.
func childSeconds(t *testing.T, s *Sphinx) float64 {
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
