package redact

import (
	"slices"
	"strings"
	"testing"
)

// What a stream releases never contains a part of a number, whatever the pauses.
func TestStream_LabelledCalls(t *testing.T) {
	t.Parallel()
	for _, c := range labelled {
		s := all.NewStream()
		var got []string
		for _, p := range talk(c.said...) {
			got = append(got, texts(s.Push(p))...)
		}
		got = append(got, texts(s.Flush())...)
		slices.Sort(got)
		want := slices.Sorted(slices.Values(c.want))
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
}

// Only what may be the beginning of a number waits, and not for long.
func TestStream_Waits(t *testing.T) {
	t.Parallel()
	s := all.NewStream()
	for _, step := range []struct {
		said string
		want []string
	}{
		{"C: Good morning.", []string{"C: Good morning."}},
		{"C: It is 0170 12", nil},
		{"A: Yes?", []string{"A: Yes?"}},
		{"C: 34567. Thank you.", []string{"C: It is 0170 12", "C: 34567. Thank you."}},
		{"C: one two", []string{"C: one two"}},
		{"C: 4711 0815", nil},
	} {
		if got := texts(s.Push(talk(step.said)[0])); !slices.Equal(got, step.want) {
			t.Errorf("%q: %q, want %q", step.said, got, step.want)
		}
	}
	if got := texts(s.Push(Passage{Speaker: "A", Text: "Hello?", StartMS: 13000, EndMS: 13100})); len(got) != 2 {
		t.Errorf("after more than 10 s: %q, want two passages", got)
	}
	if got := s.Flush(); len(got) != 0 {
		t.Errorf("flushed %q", texts(got))
	}
}

// A stream without kinds is no detour.
func TestStream_Off(t *testing.T) {
	t.Parallel()
	s := Policy{}.NewStream()
	if got := texts(s.Push(talk("C: 4111 1111")[0])); !slices.Equal(got, []string{"C: 4111 1111"}) {
		t.Error(got)
	}
}

// The times of a removal are those of its words; without times of words they are those of the passage.
func TestApply_Times(t *testing.T) {
	t.Parallel()
	p := Passage{Speaker: "C", Text: "Card 4111 1111 1111 1111 please.", StartMS: 100, EndMS: 9000,
		Words: []Word{{"card", 100, 500}, {"4111", 1000, 2000}, {"1111", 2000, 3000}, {"1111", 3000, 4000}, {"1111", 4000, 5000}, {"please", 6000, 7000}}}
	got, removed := all.Apply([]Passage{p})
	if len(removed) != 1 || removed[0].StartMS != 1000 || removed[0].EndMS != 5000 {
		t.Errorf("removed %+v, want 1000 to 5000 ms", removed)
	}
	want := []Word{{"card", 100, 500}, {"[card]", 1000, 5000}, {"please", 6000, 7000}}
	if !slices.Equal(got[0].Words, want) {
		t.Errorf("words %v, want %v", got[0].Words, want)
	}
	p.Words = []Word{{"card", 100, 500}, {"forty", 1000, 2000}}
	got, removed = all.Apply([]Passage{p})
	if removed[0].StartMS != 100 || removed[0].EndMS != 9000 || got[0].Words != nil {
		t.Errorf("words that are not in the text: removed %+v, words %v", removed, got[0].Words)
	}
}

// A view of a conversation that goes on has no half of a number.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	got, _ := all.Unfinished(talk("A: Your card number?", "C: four one one one", "C: one one one one"))
	if text := strings.Join(texts(got), "\n"); text != "A: Your card number?" {
		t.Errorf("%q", text)
	}
}

// Any text is read without a panic, and no valid card survives.
func FuzzText(f *testing.F) {
	for _, c := range labelled {
		f.Add(strings.Join(c.said, "\n"))
	}
	for _, k := range kept {
		f.Add(k)
	}
	f.Add("٤١١١ １１１１ double İ ẞ einundhundert")
	f.Fuzz(func(t *testing.T, text string) {
		got := all.Text(text)
		if again := all.Text("x " + got); strings.Count(again, "[card]") < strings.Count(got, "[card]") {
			t.Errorf("%q became %q and %q", text, got, again)
		}
	})
}
