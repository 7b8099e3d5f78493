package nlp

import (
	"context"
	"testing"
	"time"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/engine/enginetest"
	"soniq/internal/intelligence/memory"
)

func TestWordEmbedding_BaseForms(t *testing.T) {
	t.Parallel()
	l := NewWordEmbedding()
	for word, base := range map[string]string{"bills": "bill", "Batteries": "battery", "was stopped": "stop", "ran": "run",
		"stopped": "stop", "customers'": "customer", "customer’s": "customer", "INVOICE": "invoice", "xyzzy42": "xyzzy42"} {
		got, want := l.Terms(word), l.Terms(base)
		if len(got) != 1 || len(want) != 1 || got[0] != want[0] {
			t.Errorf("%q becomes %v, want that of %q, %v", word, got, base, want)
		}
	}
	if got := l.Terms("what is the of and I'm"); len(got) != 0 {
		t.Errorf("words without a meaning of their own give %v", got)
	}
}

func TestWordEmbedding_SimilarTextsAreNear(t *testing.T) {
	t.Parallel()
	l := NewWordEmbedding()
	v, err := l.Embed(context.Background(), []string{"My internet connection is very slow", "The broadband speed is terrible",
		"I have a toothache", "", "of the and"})
	if err != nil {
		t.Fatal(err)
	}
	like, unlike := engine.Dot(v[0], v[1]), engine.Dot(v[0], v[2])
	if like < unlike+0.1 {
		t.Errorf("like texts have %.2f, unlike ones %.2f", like, unlike)
	}
	if self := engine.Dot(v[0], v[0]); self < 0.999 || self > 1.001 {
		t.Errorf("length is %.3f, want 1", self)
	}
	if engine.Dot(v[3], v[3]) != 0 || engine.Dot(v[4], v[4]) != 0 {
		t.Error("a text without words has a direction")
	}
	if m := l.Model(); m != (memory.Model{Name: "builtin-lexsem-256-2", Dimensions: 256, Builtin: true}) {
		t.Errorf("model is %+v", m)
	}
}

func TestWordEmbedding_OpensWithoutCopy(t *testing.T) {
	began := time.Now()
	NewWordEmbedding().Terms("hello")
	if took := time.Since(began); took > 15*time.Millisecond {
		t.Errorf("it took %v, want less than 15 ms", took)
	}
	if n := testing.AllocsPerRun(10, func() { NewWordEmbedding() }); n > 5 {
		t.Errorf("opening allocates %v times: nothing is to be copied", n)
	}
}

func BenchmarkEmbed(b *testing.B) {
	l := NewWordEmbedding()
	text := ""
	for _, turn := range enginetest.Scripts(b, "d01")[0].Turns {
		text += turn.Text + "\n"
	}
	b.ReportAllocs()
	for b.Loop() {
		l.embed(text)
	}
}

func BenchmarkSummarise(b *testing.B) {
	r := NewRuleSummarizer(NewWordEmbedding())
	c := enginetest.ConversationOf(enginetest.Scripts(b, "d01")[0], false)
	for b.Loop() {
		_, _ = r.Summarise(context.Background(), c)
	}
}
