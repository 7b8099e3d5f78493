package speech

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// dialogue is a written call of the evaluation set.
type dialogue struct {
	ID    string
	Turns []struct{ Speaker, Text string }
}

// loadDialogue reads a dialogue.
func loadDialogue(t testing.TB, id string) dialogue {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(rig.Root(), "internal", "intelligence", "memory", "testdata", "memory-eval.json"))
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

// audio synthesises a dialogue by turns: the texts of the caller (flite's rms) and of the agent (slt), each as long
// as the call.
func (d dialogue) audio(t testing.TB) (caller, agent []int16) {
	t.Helper()
	caller, agent = make([]int16, fixture.SilenceBefore), make([]int16, fixture.SilenceBefore)
	for _, turn := range d.Turns {
		voice, side, other := "slt", &agent, &caller
		if turn.Speaker == "caller" {
			voice, side, other = "rms", &caller, &agent
		}
		pcm := append(fixture.Synthesize(t, voice, turn.Text), make([]int16, fixture.SilenceBetween)...)
		*side = append(*side, pcm...)
		*other = append(*other, make([]int16, len(pcm))...)
	}
	return caller, agent
}
