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

// passageSizes lists the compared ways to split transcripts: the maximum of words per passage, and the words repeated
// from the passage before.
var passageSizes = [][2]int{{60, 0}, {60, 20}, {120, 0}, {120, 30}, {200, 0}, {200, 50}, {400, 0}, {400, 100}}

// arrangementCount is the number of long calls into which each labelled call is embedded, one after the other.
const arrangementCount = 4

// TestMeasurePassageSizes searches for labelled calls that are parts of calls of 20 to 60 minutes, split in several ways. It
// chooses the best way with one half of the queries and reports the result of the other. Run by hand, with
// SONIQ_EVAL; the other parts of the calls are examples from WordNet.
func TestMeasurePassageSizes(t *testing.T) {
	if os.Getenv("SONIQ_EVAL") == "" {
		t.Skip("set SONIQ_EVAL to run")
	}
	docs, queries := evaluation(t)
	talk := smallTalk(t)
	halves := [2]map[[2]int]scores{{}, {}}
	for _, how := range passageSizes {
		var r passageSizeResult
		for i := range arrangementCount {
			r.search(t, longCalls(docs, talk, uint64(i)), queries, how)
		}
		halves[0][how], halves[1][how] = r.halves[0], r.halves[1]
		evalRow(t, "long calls", fmt.Sprintf("%d words, led by %d", how[0], how[1]), fmt.Sprintf("%v; at the right place %.3f; %d words in %d passages",
			r.all, r.placed/r.all.n, r.words/arrangementCount, r.passages/arrangementCount), "–")
	}
	for i, half := range halves {
		best := passageSizes[0]
		for _, how := range passageSizes {
			if half[how].gain > half[best].gain {
				best = how
			}
		}
		evalRow(t, "long calls", fmt.Sprintf("best for half %d (%d words, led by %d), on half %d", i+1, best[0], best[1], 2-i), halves[1-i][best], "–")
		evalRow(t, "long calls", fmt.Sprintf("the cut that is used, on half %d", 2-i), halves[1-i][memory.DefaultLimits], "–")
	}
}

// longCall is a call with a labelled call in the middle.
type longCall struct {
	memory.Call
	words    int
	from, to int // milliseconds: start and end of the labelled call
}

// passageSizeResult is the result of one way to split transcripts.
type passageSizeResult struct {
	all      scores
	halves   [2]scores
	placed   float64 // queries whose first relevant result has the time of the labelled call
	passages int
	words    int
}

// search adds the results of all queries over some calls.
func (out *passageSizeResult) search(t *testing.T, calls []longCall, queries []query, how [2]int) {
	d := dbtest.SQLite(t)
	s := newService(t, d, nil)
	s.SetPassageLimits(how[0], how[1])
	at := map[string]longCall{}
	for _, c := range calls {
		indexCall(t, s, d, "org_a", c.Call)
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

// longCalls embeds each labelled call into a call of 20 to 60 minutes: stretches about one subject each, from
// WordNet's examples of a field and from other calls that no query refers to.
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

// smallTalk returns lists of turns, each about one subject.
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

// otherCalls returns calls that no query refers to.
func otherCalls(t *testing.T) (all [][]string) {
	t.Helper()
	b, err := os.ReadFile("../engine/llm/testdata/notes-later.json")
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
