package memory_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/db/dbtest"
)

// cuts are the ways of cutting transcripts that are compared: words of a passage at most, and how many of the one before lead it.
var cuts = [][2]int{{60, 0}, {60, 20}, {120, 0}, {120, 30}, {200, 0}, {200, 50}, {400, 0}, {400, 100}}

// arrangements are how many long calls each labelled call is put into, one after the other.
const arrangements = 4

// TestMeasureCuts looks for the labelled calls where each is a part of a call of 20 to 60 minutes, cut in several ways. It chooses by one
// half of the queries and reports the other. Run by hand, with SONIQ_EVAL; the rest of the calls is made of WordNet's examples.
func TestMeasureCuts(t *testing.T) {
	if os.Getenv("SONIQ_EVAL") == "" {
		t.Skip("set SONIQ_EVAL to run")
	}
	docs, queries := evaluation(t)
	talk := smallTalk(t)
	halves := [2]map[[2]int]scores{{}, {}}
	for _, how := range cuts {
		var r cutResult
		for i := range arrangements {
			r.searchCut(t, longCalls(docs, talk, uint64(i)), queries, how)
		}
		halves[0][how], halves[1][how] = r.halves[0], r.halves[1]
		evalRow(t, "long calls", fmt.Sprintf("%d words, led by %d", how[0], how[1]), fmt.Sprintf("%v; at the right place %.3f; %d words in %d passages",
			r.all, r.placed/r.all.n, r.words/arrangements, r.passages/arrangements), "–")
	}
	for i, half := range halves {
		best := cuts[0]
		for _, how := range cuts {
			if half[how].gain > half[best].gain {
				best = how
			}
		}
		evalRow(t, "long calls", fmt.Sprintf("best for half %d (%d words, led by %d), on half %d", i+1, best[0], best[1], 2-i), halves[1-i][best], "–")
		evalRow(t, "long calls", fmt.Sprintf("the cut that is used, on half %d", 2-i), halves[1-i][memory.UsualCut], "–")
	}
}

// longCall is a labelled call in the midst of other things.
type longCall struct {
	memory.Call
	words    int
	from, to int // milliseconds: where the labelled call is
}

// cutResult is what one way of cutting came to.
type cutResult struct {
	all      scores
	halves   [2]scores
	placed   float64 // queries of which the first call that was meant is shown at the right place
	passages int
	words    int
}

// searchCut adds what all queries come to over some calls.
func (out *cutResult) searchCut(t *testing.T, calls []longCall, queries []query, how [2]int) {
	d := dbtest.SQLite(t)
	s := room(t, d, nil)
	s.Cut(how[0], how[1])
	at := map[string]longCall{}
	for _, c := range calls {
		learn(t, s, d, "org_a", c.Call)
		at[c.ID] = c
		out.words += c.words
	}
	n := 0
	count := `SELECT count(*) FROM memory_vectors WHERE org_id = $1`
	if err := d.Read(context.Background()).QueryRow(context.Background(), count, "org_a").Scan(&n); err != nil {
		t.Fatal(err)
	}
	out.passages += n
	for i, q := range queries {
		var order []string
		shown := false
		for _, r := range search(t, s, "org_a", memory.Query{Text: q.Query, Limit: 10}).Results {
			id := strings.TrimPrefix(*r.CallID, "call_")
			order = append(order, id)
			if c := at[*r.CallID]; q.Relevant[id] == 2 && !shown {
				if shown = true; *r.StartMS < c.to && *r.EndMS > c.from {
					out.placed++
				}
			}
		}
		out.all.add(order, q.Relevant)
		out.halves[i%2].add(order, q.Relevant)
	}
}

// longCalls puts each labelled call into a call of 20 to 60 minutes: stretches about one thing each, of WordNet's examples of a field, and
// of other calls that no query means.
func longCalls(docs []document, talk [][]string, arrangement uint64) (out []longCall) {
	r := rand.New(rand.NewPCG(7, arrangement))
	for _, doc := range docs {
		minutes := 20 + r.IntN(41)
		before := r.Float64()
		c := longCall{Call: memory.Call{ID: "call_" + doc.ID, Phone: "+14155550100", At: time.Now().Add(-time.Hour), Direction: "inbound", Status: "completed"}}
		for put := false; !put || c.words < 150*minutes; { // 150 words a minute
			if !put && float64(c.words) >= before*float64(150*minutes) {
				put, c.from = true, 400*c.words
				for _, turn := range doc.Turns {
					c.say(turn.Speaker, turn.Text)
				}
				c.to = 400 * c.words
				continue
			}
			stretch := talk[r.IntN(len(talk))]
			at := r.IntN(len(stretch))
			for i := range min(8+r.IntN(16), len(stretch)) {
				c.say([]string{"caller", "agent"}[i%2], stretch[(at+i)%len(stretch)])
			}
		}
		out = append(out, c)
	}
	return out
}

func (c *longCall) say(speaker, text string) {
	n := len(strings.Fields(text))
	c.Turns = append(c.Turns, memory.Turn{Speaker: speaker, Text: text, StartMS: 400 * c.words, EndMS: 400 * (c.words + n)})
	c.words += n
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

// smallTalk are lists of turns, each about one thing.
func smallTalk(t *testing.T) (all [][]string) {
	t.Helper()
	fields := map[string][]string{}
	for _, name := range []string{"noun", "verb", "adj", "adv"} {
		f, err := os.Open("/usr/share/wordnet/data." + name)
		if err != nil {
			t.Fatalf("%v: scripts/setup eval", err)
		}
		lines := bufio.NewScanner(f)
		for lines.Buffer(nil, 1<<20); lines.Scan(); {
			for _, q := range quoted.FindAllStringSubmatch(lines.Text(), -1) {
				if strings.Count(q[1], " ") >= 3 {
					field := strings.Fields(lines.Text())[1]
					fields[field] = append(fields[field], q[1])
				}
			}
		}
		_ = f.Close()
	}
	var names []string
	for name, turns := range fields {
		if len(turns) >= 100 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, fields[name])
	}
	return append(all, otherCalls(t)...)
}

// otherCalls are calls that no query means.
func otherCalls(t *testing.T) (all [][]string) {
	t.Helper()
	b, err := os.ReadFile("../engine/testdata/notes-later.json")
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Docs []document
	}
	if err := json.Unmarshal(b, &set); err != nil {
		t.Fatal(err)
	}
	for _, c := range set.Docs {
		var turns []string
		for _, turn := range c.Turns {
			turns = append(turns, turn.Text)
		}
		all = append(all, turns)
	}
	return all
}
