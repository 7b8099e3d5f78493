package nlp

import (
	"context"
	"testing"

	"soniq/internal/intelligence/engine/enginetest"
)

func TestShowNotes(t *testing.T) {
	if !testing.Verbose() {
		t.Skip("prints notes when verbose")
	}
	r := NewRuleSummarizer(NewWordEmbedding())
	for i, s := range enginetest.Scripts(t) {
		if i%6 != 0 {
			continue
		}
		n, _ := r.Summarise(context.Background(), enginetest.ConversationOf(s, i%12 == 0))
		t.Logf("%s [%s %s %v] %s", s.ID, n.Outcome, n.Sentiment.Caller, n.Topics, n.Summary)
	}
}
