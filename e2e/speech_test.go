package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"soniq/e2e/rig"
	"soniq/media"
)

// A dialogue is a written call of the evaluation set.
type dialogue struct {
	ID    string
	Turns []struct{ Speaker, Text string }
}

func dialogueOf(t testing.TB, id string) dialogue {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(rig.Root(), "memory", "testdata", "memory-eval.json"))
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Docs []dialogue }
	if err := json.Unmarshal(b, &set); err != nil {
		t.Fatal(err)
	}
	for _, d := range set.Docs {
		if d.ID == id {
			return d
		}
	}
	t.Fatalf("no dialogue %s", id)
	return dialogue{}
}

// said is everything one side says.
func (d dialogue) said(side string) string {
	var all []string
	for _, turn := range d.Turns {
		if turn.Speaker == side {
			all = append(all, turn.Text)
		}
	}
	return strings.Join(all, " ")
}

const (
	before  = 8000 // samples of silence before the first turn
	between = 4000 // and after each
)

// voices speaks a dialogue by turns: what the caller (flite's rms) and the agent (slt) say, both as long as the call.
func (d dialogue) voices(t testing.TB) (caller, agent []int16) {
	t.Helper()
	caller, agent = make([]int16, before), make([]int16, before)
	for _, turn := range d.Turns {
		voice, side, other := "slt", &agent, &caller
		if turn.Speaker == "caller" {
			voice, side, other = "rms", &caller, &agent
		}
		pcm := append(say(t, voice, turn.Text), make([]int16, between)...)
		*side = append(*side, pcm...)
		*other = append(*other, make([]int16, len(pcm))...)
	}
	return caller, agent
}

// say speaks a text as a telephone carries it: 8 kHz, 250 to 3500 Hz.
func say(t testing.TB, voice, text string) []int16 {
	t.Helper()
	wide, narrow := temporary(t, "wide.wav"), temporary(t, "narrow.wav")
	for _, command := range [][]string{
		{"flite", "-voice", voice, "-t", text, "-o", wide},
		{"sox", wide, "-r", "8000", "-c", "1", "-b", "16", narrow, "sinc", "250-3500", "norm", "-3"},
	} {
		if _, err := exec.LookPath(command[0]); err != nil {
			t.Skipf("%s is not installed", command[0])
		}
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", command, err, out)
		}
	}
	w, err := media.ReadWAV(narrow)
	if err != nil {
		t.Fatal(err)
	}
	return w.PCM[0]
}

var notWord = regexp.MustCompile(`[^a-z' ]+`)

func words(text string) []string {
	return strings.Fields(notWord.ReplaceAllString(strings.ToLower(text), " "))
}

// wordErrors counts words that are wrong, missing or too many, and the words said.
func wordErrors(said, heard string) (wrong, of int) {
	a, b := words(said), words(heard)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)], len(a)
}
