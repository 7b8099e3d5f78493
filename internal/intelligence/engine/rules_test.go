package engine

import (
	"context"
	"strings"
	"testing"

	"soniq/internal/intelligence/transcript"
)

// conversationOf returns a script as a conversation; if recognised is set, in lower case without punctuation, as a
// recogniser writes.
func conversationOf(s script, recognised bool) transcript.Conversation {
	var c transcript.Conversation
	for i, t := range s.Turns {
		text := t.Text
		if recognised {
			text = strings.Join(normalizedWords(text), " ")
		}
		c.Turns = append(c.Turns, transcript.Turn{ID: i, Speaker: transcript.Speaker(t.Speaker), Text: text})
	}
	return c
}

// sharesWords reports whether two texts share about half of the words of b.
func sharesWords(a, b string) bool {
	in := wordSet(strings.Join(normalizedWords(a), " "))
	shared, n := 0, 0
	for _, w := range normalizedWords(b) {
		n++
		if in[w] {
			shared++
		}
	}
	return 2*shared >= n-1
}

func TestShowNotes(t *testing.T) {
	if !testing.Verbose() {
		t.Skip("prints notes when verbose")
	}
	r := NewRuleSummarizer(NewWordEmbedding())
	for i, s := range scripts(t) {
		if i%6 != 0 {
			continue
		}
		n, _ := r.Summarise(context.Background(), conversationOf(s, i%12 == 0))
		t.Logf("%s [%s %s %v] %s", s.ID, n.Outcome, n.Sentiment.Caller, n.Topics, n.Summary)
	}
}
