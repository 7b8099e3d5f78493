package ai

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"soniq/transcript"
)

// conversationOf makes a conversation of a script; plainly, it is written as a recogniser writes.
func conversationOf(s script, recognised bool) transcript.Conversation {
	var c transcript.Conversation
	for i, t := range s.Turns {
		text := t.Text
		if recognised {
			text = strings.Join(plain(text), " ")
		}
		c.Turns = append(c.Turns, transcript.Turn{ID: i, Speaker: transcript.Speaker(t.Speaker), Text: text})
	}
	return c
}

type gold struct {
	Actions   map[string][]string
	Sentiment map[string]string
}

func goldNotes(t *testing.T) gold {
	b, err := os.ReadFile("testdata/notes.json")
	if err != nil {
		t.Fatal(err)
	}
	var g gold
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestActionItemsAreFound measures the rules against calls labelled by hand, as written and as recognised.
func TestActionItemsAreFound(t *testing.T) {
	g := goldNotes(t)
	r := NewRules(NewLexsem())
	for _, mode := range []struct {
		name       string
		recognised bool
		least      float64
	}{{"written", false, 0.80}, {"recognised", true, 0.65}} {
		var hits, items, wanted, found int
		for _, s := range scripts(t) {
			want, ok := g.Actions[s.ID]
			if !ok {
				continue
			}
			n, err := r.Summarise(context.Background(), conversationOf(s, mode.recognised))
			if err != nil {
				t.Fatal(err)
			}
			met := map[string]bool{}
			for _, a := range n.ActionItems {
				text := strings.ToLower(s.Turns[a.Turn].Text)
				hit := false
				for _, w := range want {
					if strings.Contains(text, strings.ToLower(w)) && alike(a.Text, w) {
						met[w], hit = true, true
					}
				}
				items++
				if hit {
					hits++
				} else {
					t.Logf("%s %s: extra %q", mode.name, s.ID, a.Text)
				}
			}
			wanted += len(want)
			found += len(met)
			for _, w := range want {
				if !met[w] {
					t.Logf("%s %s: missed %q", mode.name, s.ID, w)
				}
			}
		}
		p, rc := float64(hits)/float64(items), float64(found)/float64(wanted)
		f1 := 2 * p * rc / (p + rc)
		t.Logf("%s: precision %.2f, recall %.2f, F1 %.2f", mode.name, p, rc, f1)
		if f1 < mode.least {
			t.Errorf("%s: F1 of action items is %.2f, want at least %.2f", mode.name, f1, mode.least)
		}
	}
}

// alike tells whether two texts share half of the shorter one's words.
func alike(a, b string) bool {
	in := wordSet(strings.Join(plain(a), " "))
	shared, n := 0, 0
	for _, w := range plain(b) {
		n++
		if in[w] {
			shared++
		}
	}
	return 2*shared >= n-1
}

func TestMoodOfCallersIsRead(t *testing.T) {
	g := goldNotes(t)
	r := NewRules(NewLexsem())
	right, all := 0, 0
	short := map[transcript.Mood]string{transcript.Positive: "pos", transcript.Negative: "neg", transcript.Neutral: "neu", transcript.Mixed: "mix"}
	for _, s := range scripts(t) {
		want, ok := g.Sentiment[s.ID]
		if !ok {
			continue
		}
		n, _ := r.Summarise(context.Background(), conversationOf(s, false))
		all++
		if got := short[n.Sentiment.Caller]; got == want {
			right++
		} else {
			t.Logf("%s: got %s, want %s", s.ID, got, want)
		}
	}
	t.Logf("%d of %d right", right, all)
	if right*10 < all*7 {
		t.Errorf("mood of %d of %d callers is right, want seven in ten", right, all)
	}
}

func TestShowNotes(t *testing.T) {
	if !testing.Verbose() {
		t.Skip("prints notes when verbose")
	}
	r := NewRules(NewLexsem())
	for i, s := range scripts(t) {
		if i%6 != 0 {
			continue
		}
		n, _ := r.Summarise(context.Background(), conversationOf(s, i%12 == 0))
		t.Logf("%s [%s %s %v] %s", s.ID, n.Outcome, n.Sentiment.Caller, n.Topics, n.Summary)
	}
}
