package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// document is a scripted call of the evaluation set, query a question with hand-graded answers.
type (
	document struct {
		ID    string
		Turns []struct{ Speaker, Text string }
	}
	query struct {
		ID, Kind, Query string
		Relevant        map[string]int
	}
)

func evaluation(t testing.TB) ([]document, []query) {
	t.Helper()
	b, err := os.ReadFile("testdata/memory-eval.json")
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Docs    []document
		Queries []query
	}
	if err := json.Unmarshal(b, &set); err != nil {
		t.Fatal(err)
	}
	return set.Docs, set.Queries
}

// newService returns a service over a database with two organisations.
func newService(t testing.TB, d *db.DB, change func(*memory.Config)) *memory.Service {
	t.Helper()
	for _, id := range []string{"org_a", "org_b"} {
		const q = `INSERT INTO orgs (id, path, environment, name, plan, status, country, timezone, language, settings, created_at,
			updated_at)
			VALUES ($1, $1, 'production', $1, 'free', 'active', 'US', 'UTC', 'en', '{}', 0, 0)`
		err := d.Tx(context.Background(), func(tx db.Querier) error {
			_, err := tx.Exec(context.Background(), q, id)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	l := nlp.NewWordEmbedding()
	c := memory.Config{DB: d, Lexicon: l, Embedder: l, Recordings: fakeRecordings{}}
	if change != nil {
		change(&c)
	}
	return memory.New(c)
}

// fakeRecordings has the audio of every recording.
type fakeRecordings struct{}

func (fakeRecordings) RecordingURL(_, id string) string { return "https://calls.example/" + id }

// callOf returns a document as a call.
func callOf(d document, phone string, at time.Time) memory.Call {
	c := memory.Call{ID: "call_" + d.ID, Phone: phone, At: at, Direction: "inbound", Status: "completed", TalkSeconds: 60}
	for i, turn := range d.Turns {
		speaker := "Agent"
		if turn.Speaker == "caller" {
			speaker = "Caller"
		}
		c.Turns = append(c.Turns, memory.Turn{Speaker: speaker, Text: turn.Text, StartMS: i * 5000, EndMS: i*5000 + 4000})
	}
	return c
}

func indexCall(t testing.TB, s *memory.Service, d *db.DB, org string, c memory.Call) {
	t.Helper()
	l, err := s.Prepare(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Tx(context.Background(), func(tx db.Querier) error { return s.IndexCall(context.Background(), tx, org, l) })
	if err != nil {
		t.Fatal(err)
	}
}

func search(t testing.TB, s *memory.Service, org string, q memory.Query) *memory.Found {
	t.Helper()
	f, err := s.Search(context.Background(), org, q)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Scores separate answered from unanswered queries, with the builtin embedding and with one whose score range is
// unknown.
func TestSearch_ScoresSeparateAnswers(t *testing.T) {
	t.Parallel()
	docs, queries := evaluation(t)
	for name, embedder := range map[string]memory.Embedder{"builtin": nlp.NewWordEmbedding(), "another model": &otherModel{WordEmbedding: nlp.NewWordEmbedding(), name: "other"}} {
		d := dbtest.SQLite(t)
		s := newService(t, d, func(c *memory.Config) { c.Embedder = embedder })
		for i, doc := range docs {
			indexCall(t, s, d, "org_a", callOf(doc, fmt.Sprintf("+1415555%04d", i), time.Now()))
		}
		best := func(text string) float64 {
			f := search(t, s, "org_a", memory.Query{Text: text, Limit: 1})
			if len(f.Results) == 0 {
				return 0
			}
			return f.Results[0].Score
		}
		var meant, none []float64
		for _, q := range queries {
			meant = append(meant, best(q.Query))
		}
		for _, text := range []string{"quantum physics lecture", "volcano eruption in Iceland", "chocolate cake recipe",
			"penguin colony in Antarctica", "Mozart symphony orchestra", "dinosaur fossils", "mountain climbing expedition",
			"rainforest deforestation", "submarine torpedo", "beekeeping honey", "solar eclipse", "xyzzy plugh", "of the and"} {
			none = append(none, best(text))
		}
		slices.Sort(meant)
		slices.Sort(none)
		evalRow(t, "scores, "+name, "of the best answer: to queries with one (90), without one (13)", fmt.Sprintf("median %.2f; median %.2f, highest %.2f",
			meant[len(meant)/2], none[len(none)/2], none[len(none)-1]), "≥ 0.5; ≤ 0.25, ≤ 0.5")
		if meant[len(meant)/2] < 0.5 || none[len(none)/2] > 0.25 || none[len(none)-1] > 0.5 {
			t.Errorf("%s: scores do not tell answers from none: %v / %v", name, meant, none)
		}
	}
}

func TestSearch_OwnOrganisationOnly(t *testing.T) {
	docs, _ := evaluation(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newService(t, d, nil)
		for i, doc := range docs[:20] {
			indexCall(t, s, d, []string{"org_a", "org_b"}[i%2], callOf(doc, "+14155550100", time.Now()))
		}
		for i, org := range []string{"org_a", "org_b"} {
			for _, phone := range []string{"", "+14155550100"} {
				f := search(t, s, org, memory.Query{Text: "internet account refund order card", Phone: phone, Limit: 50})
				if len(f.Results) != 10 {
					t.Errorf("%s finds %d calls, want its own 10", org, len(f.Results))
				}
				for _, r := range f.Results {
					at := slices.IndexFunc(docs, func(d document) bool { return "call_"+d.ID == *r.CallID })
					if at%2 != i {
						t.Errorf("%s sees call %s of the other organisation", org, *r.CallID)
					}
				}
			}
			c, err := s.Caller(context.Background(), org, "+14155550100", 50)
			if err != nil {
				t.Fatal(err)
			}
			if c.CallsTotal != 10 || len(c.Calls) != 10 {
				t.Errorf("%s remembers %d calls, %d shown, want 10", org, c.CallsTotal, len(c.Calls))
			}
		}
	})
}

func TestIndexCall_ReplacesEarlierEntries(t *testing.T) {
	docs, _ := evaluation(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newService(t, d, nil)
		c := callOf(docs[0], "+14155550100", time.Now())
		c.Summary = "Caller reported slow internet."
		for range 3 {
			indexCall(t, s, d, "org_a", c)
			search(t, s, "org_a", memory.Query{Text: "slow internet"})
		}
		f := search(t, s, "org_a", memory.Query{Text: "slow internet", Limit: 50})
		if len(f.Results) != 1 || *f.Results[0].AISummary != c.Summary {
			t.Fatalf("found %+v, want the call once", f.Results)
		}
		err := d.Tx(context.Background(), func(tx db.Querier) error {
			return s.DeleteCall(context.Background(), tx, "org_a", c.ID)
		})
		if err != nil {
			t.Fatal(err)
		}
		if f := search(t, s, "org_a", memory.Query{Text: "slow internet"}); len(f.Results) != 0 {
			t.Errorf("a forgotten call is still found: %+v", f.Results)
		}
	})
}

func TestSearch_Filters(t *testing.T) {
	docs, _ := evaluation(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newService(t, d, nil)
		at := time.Now().Add(-48 * time.Hour)
		for i, doc := range docs[:6] {
			c := callOf(doc, fmt.Sprintf("+1415555010%d", i), at.Add(time.Duration(i)*time.Hour))
			c.Summary, c.RecordingID = "Caller reported a problem with the internet.", fmt.Sprintf("rec_%d", i)
			c.AgentID, c.AgentName = fmt.Sprintf("usr_%d", i%2), "Dana"
			c.Tags = []string{fmt.Sprintf("tag%d", i%3)}
			c.Direction = []string{"inbound", "outbound"}[i%2]
			indexCall(t, s, d, "org_a", c)
		}
		indexCall(t, s, d, "org_a", callOf(docs[7], "+14155550109", time.Now().Add(-200*24*time.Hour)))
		for _, c := range []struct {
			name string
			q    memory.Query
			want int
		}{
			{"nothing", memory.Query{}, 6},
			{"phone", memory.Query{Phone: "+1 (415) 555-0103"}, 1},
			{"agent", memory.Query{AgentID: "usr_1"}, 3},
			{"unknown agent", memory.Query{AgentID: "usr_9"}, 0},
			{"tags", memory.Query{Tags: []string{"tag2"}}, 2},
			{"direction", memory.Query{Direction: "outbound"}, 3},
			{"since", memory.Query{Since: at.Add(3 * time.Hour)}, 3},
			{"until", memory.Query{Until: at.Add(2 * time.Hour)}, 2},
			{"limit", memory.Query{Limit: 2}, 2},
			{"score", memory.Query{MinScore: 1}, 0},
			{"kinds", memory.Query{Kinds: []string{"summary"}}, 6},
			{"other kinds", memory.Query{Kinds: []string{"sms"}}, 0},
			{"keyword", memory.Query{Mode: memory.Keyword}, 6},
			{"semantic", memory.Query{Mode: memory.Semantic}, 6},
		} {
			c.q.Text = "problem with the internet"
			f := search(t, s, "org_a", c.q)
			if len(f.Results) != c.want {
				t.Errorf("%s: found %d, want %d", c.name, len(f.Results), c.want)
			}
			if !slices.IsSortedFunc(f.Results, func(a, b memory.Result) int { return int(1000 * (b.Score - a.Score)) }) {
				t.Errorf("%s: results are not in order of score", c.name)
			}
		}
		r := search(t, s, "org_a", memory.Query{Text: "plugged my laptop into the router", Kinds: []string{"transcript"}}).Results[0]
		if *r.CallID != "call_d01" || *r.StartMS != 0 || *r.RecordingURL != "https://calls.example/rec_0#t=0" || r.Agent.Name != "Dana" {
			t.Errorf("result %+v does not show where it was said", r)
		}
	})
}

func TestCaller_History(t *testing.T) {
	docs, _ := evaluation(t)
	owner, due := "agent", "by Thursday"
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newService(t, d, nil)
		for i, doc := range docs[:5] {
			c := callOf(doc, "+14155550100", time.Now().Add(time.Duration(i-10)*time.Hour))
			c.Summary, c.Topics = "Caller reported thing "+doc.ID+".", []string{"billing"}
			c.Sentiment = []string{"negative", "negative", "neutral", "positive", "positive"}[i]
			c.Items, c.Outcome = []memory.Item{{Text: "Call about " + doc.ID, Owner: &owner, Due: &due}}, "follow_up"
			if i == 2 {
				c.Outcome = "resolved"
			}
			indexCall(t, s, d, "org_a", c)
		}
		indexCall(t, s, d, "org_a", callOf(docs[9], "+14155550199", time.Now()))
		c, err := s.Caller(context.Background(), "org_a", "+14155550100", 3)
		if err != nil {
			t.Fatal(err)
		}
		if c.CallsTotal != 5 || len(c.Calls) != 3 || c.Calls[0].ID != "call_d05" {
			t.Errorf("%d calls in all, shown %+v", c.CallsTotal, c.Calls)
		}
		if len(c.OpenItems) != 2 || c.OpenItems[0].Text != "Call about d05" {
			t.Errorf("open items are %+v, want those after the call that settled things", c.OpenItems)
		}
		if c.SentimentTrend != "improving" || len(c.Topics) != 1 || c.Topics[0].Count != 5 {
			t.Errorf("trend %s, topics %+v", c.SentimentTrend, c.Topics)
		}
		if !strings.Contains(c.Summary, "thing d05") || strings.Index(c.Summary, "d05") > strings.Index(c.Summary, "d04") {
			t.Errorf("summary %q does not begin with the last call", c.Summary)
		}
		none, err := s.Caller(context.Background(), "org_a", "+19995550100", 3)
		if err != nil || none.CallsTotal != 0 || none.SentimentTrend != "unknown" {
			t.Errorf("unknown number: %+v, %v", none, err)
		}
	})
}

func TestDeleteBefore_OldCalls(t *testing.T) {
	docs, _ := evaluation(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newService(t, d, nil)
		indexCall(t, s, d, "org_a", callOf(docs[0], "+14155550100", time.Now().Add(-190*24*time.Hour)))
		indexCall(t, s, d, "org_a", callOf(docs[1], "+14155550100", time.Now()))
		n, err := s.DeleteBefore(context.Background(), "org_a", time.Now().Add(-memory.Window))
		if err != nil || n != 1 {
			t.Fatalf("deleted %d, %v", n, err)
		}
		var left int
		q := `SELECT COUNT(*) FROM memory_vectors WHERE org_id = $1`
		if err := d.Read(context.Background()).QueryRow(context.Background(), q, "org_a").Scan(&left); err != nil || left != 1 {
			t.Errorf("%d vectors are left, %v; want 1", left, err)
		}
	})
}
