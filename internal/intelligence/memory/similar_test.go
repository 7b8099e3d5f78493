package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/db/dbtest"
)

// misheard are names and rare words as people write them who only heard them, and as they are in calls.
var misheard = [][2]string{
	{"Meier", "Mayer"}, {"Meyer", "Meier"}, {"Smith", "Smyth"}, {"Schmidt", "Schmitt"}, {"Mueller", "Müller"},
	{"Muller", "Müller"}, {"Jonson", "Johnson"}, {"Stephen", "Steven"}, {"Philipp", "Filip"}, {"Thomson", "Thompson"}, {"Clark", "Klark"},
	{"Weiss", "Weis"},
	{"Hofmann", "Hoffmann"}, {"Fisher", "Fischer"}, {"Krause", "Krauße"}, {"Schroeder", "Schröder"}, {"Jansen", "Janssen"},
	{"Andersen", "Anderson"},
	{"McDonald", "MacDonald"}, {"Jorgensen", "Jørgensen"}, {"Kowalski", "Kowalsky"}, {"Smiht", "Smith"}, {"Wiliams", "Williams"},
	{"Garcia", "García"},
	{"Zimmerman", "Zimmermann"}, {"Rodriguez", "Rodrigues"}, {"Gonzales", "González"}, {"Vogel", "Fogel"}, {"Wolff", "Wolf"},
	{"Plumatec", "Plumbatec"},
	{"Zintrix", "Zyntrix"}, {"Hydrocentry", "Hydrosentry"}, {"Vandermeer", "Vandermere"}, {"Oberhausser", "Oberhauser"},
	{"Pritchart", "Pritchard"},
}

// elsewhere are names that are not meant.
var elsewhere = [][2]string{{"Meier", "Mohr"}, {"Smith", "Schulz"}, {"Hofmann", "Hartmann"}, {"Miller", "Wilson"},
	{"Walter", "Weber"}, {"Fischer", "Frischmuth"},
	{"Garcia", "Martinez"}, {"Schneider", "Schuster"}, {"Plumbatec", "Hydrosentry"}}

// saidOnce returns a conversation in which the caller says one text.
func saidOnce(id, text string) document {
	return document{ID: id, Turns: []struct{ Speaker, Text string }{{"caller", text}}}
}

// https://github.com/DenverCoder1/jct-discord-bot/issues/153
func TestSearch_LabelledMisspellings(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := newService(t, d, nil)
	names := map[string]bool{}
	for _, c := range slices.Concat(misheard, elsewhere) {
		names[c[1]] = true
	}
	for name := range names {
		said := "Please tell " + name + " that the delivery arrives on Thursday."
		indexCall(t, s, d, "org_a", callOf(saidOnce(name, said), "+14155550100", time.Now()))
	}
	finds := func(asked, meant, phone, mode string) bool {
		f := search(t, s, "org_a", memory.Query{Text: asked, Limit: 10, Phone: phone, Mode: mode})
		return slices.ContainsFunc(f.Results, func(r memory.Result) bool { return strings.Contains(r.Text, meant) && r.Score >= 0.15 })
	}
	for _, phone := range []string{"", "+14155550100"} {
		found, wrong := 0, 0
		for _, c := range misheard {
			if finds(c[0], c[1], phone, memory.Hybrid) {
				found++
			} else {
				t.Logf("%s does not find %s", c[0], c[1])
			}
		}
		for _, c := range elsewhere {
			if finds(c[0], c[1], phone, memory.Keyword) {
				wrong++
				t.Logf("%s finds %s", c[0], c[1])
			}
		}
		t.Logf("number %q: %d of %d misspelt names found, %d of %d other names", phone, found, len(misheard), wrong, len(elsewhere))
		if found < len(misheard)*95/100 || wrong > 1 {
			t.Errorf("want at least 95 %% of the misspelt names and at most one other")
		}
	}
}

// Passages that contain the word come before passages with a similar word.
func TestSearch_ExactBeforeSimilar(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := newService(t, d, nil)
	for i, name := range []string{"Zyntrex", "Zyntrix", "Zintrix"} {
		said := "Please tell " + name + " that the delivery arrives on Thursday."
		indexCall(t, s, d, "org_a", callOf(saidOnce(name, said), fmt.Sprintf("+1415555010%d", i), time.Now()))
	}
	f := search(t, s, "org_a", memory.Query{Text: "Zyntrix"})
	if len(f.Results) != 3 || *f.Results[0].CallID != "call_Zyntrix" || f.Results[0].Score <= f.Results[1].Score {
		t.Errorf("found %+v", f.Results)
	}
	f = search(t, s, "org_a", memory.Query{Text: "Zyntrix", Mode: memory.Keyword})
	if len(f.Results) != 3 || *f.Results[0].CallID != "call_Zyntrix" {
		t.Errorf("found by words %+v", f.Results)
	}
	if f = search(t, s, "org_b", memory.Query{Text: "Zyntrix"}); len(f.Results) != 0 {
		t.Errorf("another organisation finds %+v", f.Results)
	}
}

func BenchmarkSearch_Misspelt(b *testing.B) {
	d := dbtest.SQLite(b)
	s := newService(b, d, nil)
	docs, _ := evaluation(b)
	for i, doc := range docs[:min(len(docs), 20)] {
		indexCall(b, s, d, "org_a", callOf(doc, fmt.Sprintf("+1415555%04d", i), time.Now()))
	}
	for _, person := range []string{"Zimmermann", "plumber"} {
		b.Run(person, func(b *testing.B) {
			for b.Loop() {
				search(b, s, "org_a", memory.Query{Text: "the call with the " + person + " about the invoice"})
			}
		})
	}
}
