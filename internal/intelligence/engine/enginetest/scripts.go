// Package enginetest has what the tests of several engines share: the calls of the evaluation set and a fake server.
package enginetest

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"soniq/internal/intelligence/transcript"
)

// Script is the text of one call of the evaluation set.
type Script struct {
	ID    string
	Turns []struct{ Speaker, Text string }
}

// Scripts reads calls of the evaluation set; without ids it returns all of them.
func Scripts(t testing.TB, ids ...string) []Script {
	t.Helper()
	b, err := os.ReadFile("../../memory/testdata/memory-eval.json")
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Docs []Script }
	if err := json.Unmarshal(b, &set); err != nil {
		t.Fatal(err)
	}
	if len(ids) == 0 {
		return set.Docs
	}
	var out []Script
	for _, id := range ids {
		for _, d := range set.Docs {
			if d.ID == id {
				out = append(out, d)
			}
		}
	}
	return out
}

// Reference returns the words of one side in a script.
func (s Script) Reference(speaker string) []string {
	var all []string
	for _, turn := range s.Turns {
		if turn.Speaker == speaker {
			all = append(all, NormalizedWords(turn.Text)...)
		}
	}
	return all
}

// ConversationOf returns a script as a conversation; if recognised is set, in lower case without punctuation, as a
// recogniser writes.
func ConversationOf(s Script, recognised bool) transcript.Conversation {
	var c transcript.Conversation
	for i, t := range s.Turns {
		text := t.Text
		if recognised {
			text = strings.Join(NormalizedWords(text), " ")
		}
		c.Turns = append(c.Turns, transcript.Turn{ID: i, Speaker: transcript.Speaker(t.Speaker), Text: text})
	}
	return c
}

var notWord = regexp.MustCompile(`[^a-z' ]`)

// NormalizedWords returns the words of a text as they are compared: lower case, letters and apostrophes only.
func NormalizedWords(s string) []string {
	s = strings.ToLower(s)
	s = strings.NewReplacer("mr.", "mister", "mrs.", "misses", "\n", " ").Replace(s)
	return strings.Fields(notWord.ReplaceAllString(s, " "))
}

// EvalRow logs one row of the table that `make eval` collects.
func EvalRow(t testing.TB, part, measure string, result any, target string) {
	t.Helper()
	t.Logf("EVAL | %s | %s | %v | %s |", part, measure, result, target)
}
