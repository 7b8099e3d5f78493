package memory_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// otherModel acts as the embedding of a server: the builtin one with another name, which can fail.
type otherModel struct {
	*nlp.WordEmbedding
	name  string
	fails atomic.Bool
}

func (o *otherModel) Model() memory.Model { return memory.Model{Name: o.name, Dimensions: 256} }

func (o *otherModel) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if o.fails.Load() {
		return nil, errors.New("the server is down")
	}
	return o.WordEmbedding.Embed(ctx, texts)
}

// embeddedCalls notes the model of calls whose passages were embedded again.
type embeddedCalls map[string]string

func (e embeddedCalls) PassagesEmbedded(_ context.Context, _ db.Querier, org, callID string, m memory.Model) error {
	e[org+" "+callID] = m.Name
	return nil
}

func TestReembed_OtherModel(t *testing.T) {
	docs, _ := evaluation(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		old, now := &otherModel{WordEmbedding: nlp.NewWordEmbedding(), name: "old"}, &otherModel{WordEmbedding: nlp.NewWordEmbedding(), name: "new"}
		told := map[string]string{}
		before := newService(t, d, func(c *memory.Config) { c.Embedder = old })
		after := memory.New(memory.Config{DB: d, Lexicon: nlp.NewWordEmbedding(), Embedder: now})
		after.Observe(embeddedCalls(told))
		for i, doc := range docs[:30] {
			indexCall(t, before, d, []string{"org_a", "org_b"}[i%2], callOf(doc, "+14155550100", time.Now()))
		}
		query := memory.Query{Text: "the broadband is sluggish at night", Mode: memory.Semantic, Limit: 3}
		best := func() *memory.Result {
			if f := search(t, after, "org_a", query); len(f.Results) > 0 && f.Results[0].Score > 0.3 {
				return &f.Results[0]
			}
			return nil
		}
		if r := best(); r != nil {
			t.Fatalf("vectors of another model are compared: %+v", r)
		}
		id := search(t, after, "org_a", memory.Query{Text: "internet slow every evening", Mode: memory.Keyword}).Results[0].ID
		now.fails.Store(true)
		if n, err := after.Reembed(ctx); err == nil || n != 0 {
			t.Fatalf("embedded %d by a server that is down, %v", n, err)
		}
		now.fails.Store(false)
		if n, err := after.Reembed(ctx); err != nil || n != 30 {
			t.Fatalf("embedded %d again, %v; want 30", n, err)
		}
		r := best()
		if r == nil || *r.CallID != "call_d01" || r.ID != id {
			t.Errorf("afterwards %+v is found by its meaning, want passage %s of d01", r, id)
		}
		if len(told) != 30 || told["org_b call_d02"] != "new" {
			t.Errorf("told of %d calls: %v", len(told), told)
		}
		if n, err := after.Reembed(ctx); err != nil || n != 0 {
			t.Errorf("a second time %d passages, %v; want none", n, err)
		}
		if n := len(search(t, after, "org_b", memory.Query{Text: "internet account order card refund", Limit: 50}).Results); n > 15 {
			t.Errorf("org_b finds %d calls, it has 15", n)
		}
	})
}

func TestReembed_AfterEmbedderFailure(t *testing.T) {
	docs, _ := evaluation(t)
	d := dbtest.SQLite(t)
	e := &otherModel{WordEmbedding: nlp.NewWordEmbedding(), name: "remote"}
	s := newService(t, d, func(c *memory.Config) { c.Embedder = e })
	e.fails.Store(true)
	l, err := s.Prepare(context.Background(), callOf(docs[0], "+14155550100", time.Now()))
	if err == nil {
		t.Fatal("a server that is down embeds")
	}
	if err := d.Tx(context.Background(), func(tx db.Querier) error {
		return s.IndexCall(context.Background(), tx, "org_a", l)
	}); err != nil {
		t.Fatal(err)
	}
	e.fails.Store(false)
	if n, err := s.Reembed(context.Background()); err != nil || n != 1 {
		t.Fatalf("embedded %d, %v; want 1", n, err)
	}
	f := search(t, s, "org_a", memory.Query{Text: "the broadband is sluggish at night", Mode: memory.Semantic})
	if len(f.Results) != 1 || f.Results[0].Score < 0.3 {
		t.Errorf("found %+v by meaning", f.Results)
	}
}
