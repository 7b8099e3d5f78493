package memory_test

import (
	"context"
	"testing"

	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/transcript"
)

// noteOf returns the summary that the builtin summariser writes of a document.
func noteOf(t testing.TB, rules *nlp.RuleSummarizer, d document) string {
	t.Helper()
	var c transcript.Conversation
	for i, turn := range d.Turns {
		c.Turns = append(c.Turns, transcript.Turn{ID: i, Speaker: transcript.Speaker(turn.Speaker), Text: turn.Text})
	}
	n, err := rules.Summarise(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return n.Summary
}
