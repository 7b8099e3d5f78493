package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/engine/enginetest"
	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/transcript"
)

// noteLabels are the human labels of the calls of an evaluation set, by call.
type noteLabels struct {
	Actions   map[string][]string
	Sentiment map[string]string
	Outcome   map[string]string
	Flags     map[string][]string
	Entities  map[string]map[string][]string
	Docs      []enginetest.Script // the calls, if they are not those of the evaluation set
}

func readLabels(t testing.TB, file string) noteLabels {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var l noteLabels
	if err := json.Unmarshal(b, &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// matchCounts counts matches between results and labels, for precision and recall.
type matchCounts struct{ hits, given, found, wanted int }

func (x matchCounts) precision() float64 { return float64(x.hits) / float64(max(x.given, 1)) }
func (x matchCounts) recall() float64    { return float64(x.found) / float64(max(x.wanted, 1)) }

func (x matchCounts) f1() float64 {
	p, r := x.precision(), x.recall()
	if p+r == 0 {
		return 0
	}
	return 2 * p * r / (p + r)
}

func (x matchCounts) String() string {
	return fmt.Sprintf("F1 %.2f (precision %.2f, recall %.2f, %d labels)", x.f1(), x.precision(), x.recall(), x.wanted)
}

// notesOf returns the notes that a summariser writes of calls, by call.
func notesOf(t testing.TB, w transcript.Summarizer, calls []enginetest.Script, recognised bool) map[string]transcript.Note {
	t.Helper()
	out := map[string]transcript.Note{}
	for _, s := range calls {
		n, err := w.Summarise(context.Background(), enginetest.ConversationOf(s, recognised))
		if err != nil {
			t.Fatal(err)
		}
		out[s.ID] = n
	}
	return out
}

// evaluatedSummarizer returns the summariser to evaluate: the server named by SONIQ_EVAL_WRITER, by default the
// builtin rules.
func evaluatedSummarizer(t testing.TB) transcript.Summarizer {
	w, err := NewSummarizer(engine.Config{Engine: os.Getenv("SONIQ_EVAL_WRITER"), Model: os.Getenv("SONIQ_EVAL_WRITER_MODEL"),
		Key: os.Getenv("SONIQ_EVAL_WRITER_KEY")}, nlp.NewWordEmbedding())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// countActions compares action items with labels. An item is correct if it cites the turn and shares the words.
func countActions(t testing.TB, calls []enginetest.Script, notes map[string]transcript.Note, want map[string][]string) matchCounts {
	var x matchCounts
	for _, s := range calls {
		labelled, ok := want[s.ID]
		if !ok {
			continue
		}
		met := map[string]bool{}
		for _, a := range notes[s.ID].ActionItems {
			text, hit := strings.ToLower(s.Turns[*a.Turn].Text), false
			for _, w := range labelled {
				if strings.Contains(text, strings.ToLower(w)) && sharesWords(a.Text, w) {
					met[w], hit = true, true
				}
			}
			x.given++
			if hit {
				x.hits++
			} else {
				t.Logf("%s: extra %q", s.ID, a.Text)
			}
		}
		x.wanted += len(labelled)
		x.found += len(met)
		for _, w := range labelled {
			if !met[w] {
				t.Logf("%s: missed %q", s.ID, w)
			}
		}
	}
	return x
}

// countRight compares one value per call with its label.
func countRight(
	t testing.TB, what string, notes map[string]transcript.Note, want map[string]string, got func(transcript.Note) string,
) (right, all int) {
	for _, id := range ids(want) {
		all++
		if g := got(notes[id]); g == want[id] {
			right++
		} else {
			t.Logf("%s: %s %q, want %q", id, what, g, want[id])
		}
	}
	return right, all
}

func ids[T any](m map[string]T) []string {
	var out []string
	for id := range m {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// countSets compares a set of values per call with its labels.
func countSets(
	t testing.TB, what string, notes map[string]transcript.Note, want map[string][]string, got func(transcript.Note) []string,
) matchCounts {
	var x matchCounts
	for _, id := range ids(want) {
		have := got(notes[id])
		x.given += len(have)
		x.wanted += len(want[id])
		for _, g := range have {
			if slices.Contains(want[id], g) {
				x.hits++
				x.found++
			} else {
				t.Logf("%s: %s %q is extra", id, what, g)
			}
		}
		for _, w := range want[id] {
			if !slices.Contains(have, w) {
				t.Logf("%s: %s %q is missed", id, what, w)
			}
		}
	}
	return x
}

func flagsIn(n transcript.Note) (all []string) {
	for _, f := range n.Flags {
		all = append(all, f.Kind)
	}
	return all
}

// countEntities compares the entities of one type. An entity is correct if it contains the label or the label
// contains it.
func countEntities(t testing.TB, notes map[string]transcript.Note, want map[string]map[string][]string, kind string) matchCounts {
	var x matchCounts
	for _, id := range ids(want) {
		met := map[string]bool{}
		for _, e := range notes[id].Entities {
			if e.Type != kind {
				continue
			}
			hit := false
			for _, w := range want[id][kind] {
				a, b := strings.Join(enginetest.NormalizedWords(e.Value), " "), strings.Join(enginetest.NormalizedWords(w), " ")
				if strings.Contains(a, b) || strings.Contains(b, a) {
					met[w], hit = true, true
				}
			}
			x.given++
			if hit {
				x.hits++
			} else {
				t.Logf("%s: %s %q is extra", id, kind, e.Value)
			}
		}
		x.wanted += len(want[id][kind])
		x.found += len(met)
		for _, w := range want[id][kind] {
			if !met[w] {
				t.Logf("%s: %s %q is missed", id, kind, w)
			}
		}
	}
	return x
}

var shortMood = map[transcript.Mood]string{transcript.Positive: "pos", transcript.Negative: "neg", transcript.Neutral: "neu", transcript.Mixed: "mix"}

// TestEvaluateNotes measures the fields of notes against three sets of labels: the first, which the rules were
// developed with; the rest of the evaluation set, after whose first count the rules were changed; and calls written
// after both.
func TestEvaluateNotes(t *testing.T) {
	w := evaluatedSummarizer(t)
	first, more, unseen := readLabels(t, "notes.json"), readLabels(t, "notes-more.json"), readLabels(t, "notes-later.json")
	for _, form := range []struct {
		name       string
		recognised bool
		least      float64
	}{{"as written", false, 0.80}, {"words alone", true, 0.65}} {
		part, known := "notes, "+form.name, enginetest.Scripts(t)
		notes := notesOf(t, w, known, form.recognised)
		actions := countActions(t, known, notes, first.Actions)
		if actions.f1() < form.least {
			t.Errorf("%s: action items have %v, want %.2f", part, actions, form.least)
		}
		enginetest.EvalRow(t, part, "action items, first labels (25 calls)", actions, "≥ 0.88 as written")
		enginetest.EvalRow(t, part, "action items, later labels (35 calls)", countActions(t, known, notes, more.Actions), "–")
		right, all := countRight(t, "mood", notes, first.Sentiment, callerMoodOf)
		enginetest.EvalRow(t, part, "mood of the caller, first labels", fmt.Sprintf("%d of %d", right, all), "–")
		evalFields(t, part+", 60 calls", notes, more)
		notes = notesOf(t, w, unseen.Docs, form.recognised)
		enginetest.EvalRow(t, part+", 12 later calls", "action items", countActions(t, unseen.Docs, notes, unseen.Actions), "–")
		evalFields(t, part+", 12 later calls", notes, unseen)
	}
}

func callerMoodOf(n transcript.Note) string { return shortMood[n.Sentiment.Caller] }

// evalFields measures the fields that have one label or a set of them per call.
func evalFields(t *testing.T, part string, notes map[string]transcript.Note, l noteLabels) {
	right, all := countRight(t, "mood", notes, l.Sentiment, callerMoodOf)
	enginetest.EvalRow(t, part, "mood of the caller", fmt.Sprintf("%d of %d", right, all), "–")
	right, all = countRight(t, "outcome", notes, l.Outcome, func(n transcript.Note) string { return string(n.Outcome) })
	enginetest.EvalRow(t, part, "outcome", fmt.Sprintf("%d of %d", right, all), "–")
	enginetest.EvalRow(t, part, "flags", countSets(t, "flag", notes, l.Flags, flagsIn), "–")
	var every matchCounts
	for _, kind := range transcript.EntityTypes {
		x := countEntities(t, notes, l.Entities, kind)
		every = matchCounts{every.hits + x.hits, every.given + x.given, every.found + x.found, every.wanted + x.wanted}
		t.Logf("%s: entities of type %s: %v", part, kind, x)
	}
	enginetest.EvalRow(t, part, "entities of all types", every, "–")
}

// sharesWords reports whether two texts share about half of the words of b.
func sharesWords(a, b string) bool {
	in := engine.WordSet(strings.Join(enginetest.NormalizedWords(a), " "))
	shared, n := 0, 0
	for _, w := range enginetest.NormalizedWords(b) {
		n++
		if in[w] {
			shared++
		}
	}
	return 2*shared >= n-1
}
