package fuzzy

import (
	"fmt"
	"strings"
	"testing"
)

// misspelt are names as people write them who only heard them, and the names that are meant.
var misspelt = [][2]string{
	{"Meier", "Mayer"}, {"Meier", "Maier"}, {"Meyer", "Meier"}, {"Mayr", "Meier"}, {"Smith", "Smyth"}, {"Schmidt", "Schmitt"}, {"Schmied", "Schmidt"},
	{"Mueller", "Müller"}, {"Muller", "Müller"}, {"Müler", "Müller"}, {"Jönson", "Johnson"}, {"Jonson", "Johnson"}, {"Stephen", "Steven"},
	{"Katherine", "Kathryn"}, {"Catherine", "Katharina"}, {"Philipp", "Filip"}, {"Thomson", "Thompson"}, {"Tomson", "Thompson"}, {"Clark", "Klark"},
	{"Weis", "Weiß"}, {"Weiss", "Weis"}, {"Hofmann", "Hoffmann"}, {"Fischer", "Fisher"}, {"Fisher", "Fischer"}, {"Becker", "Bäcker"},
	{"Krause", "Krauße"}, {"Schröder", "Schroeder"}, {"Schroder", "Schröder"}, {"Jansen", "Janssen"}, {"Petersen", "Peterson"},
	{"Andersen", "Anderson"}, {"McDonald", "MacDonald"}, {"Wright", "Right"}, {"Sarah", "Sara"}, {"Jorgensen", "Jørgensen"}, {"Kowalski", "Kowalsky"},
	{"Smiht", "Smith"}, {"Willliams", "Williams"}, {"Wiliams", "Williams"}, {"Garcia", "García"}, {"Nguyen", "Nguyễn"}, {"Lukasz", "Łukasz"},
	{"Zimmerman", "Zimmermann"}, {"Simmermann", "Zimmermann"}, {"Bergmann", "Bergman"}, {"Kaiser", "Keyser"}, {"Rodriguez", "Rodrigues"},
	{"Gonzales", "González"}, {"Dubois", "Duboi"}, {"Vogel", "Fogel"}, {"Wolff", "Wolf"}, {"Walther", "Walter"},
}

// different are names that are not meant.
var different = [][2]string{
	{"Meier", "Mohr"}, {"Meier", "Müller"}, {"Smith", "Schulz"}, {"Schmidt", "Schulz"}, {"Jones", "James"}, {"Anna", "Emma"}, {"Lee", "Li"},
	{"Becker", "Decker"}, {"Hofmann", "Hartmann"}, {"Miller", "Wilson"}, {"Kim", "Jim"}, {"Brown", "Braun Weber"}, {"Ann", "Dan"},
	{"Walter", "Weber"}, {"Thomas", "Tobias"}, {"Peter", "Paul"}, {"Fischer", "Frischmuth"}, {"Garcia", "Martinez"}, {"Schneider", "Schuster"},
}

func TestDistance_LabelledMisspellings(t *testing.T) {
	t.Parallel()
	found, wrong := 0, 0
	for _, c := range misspelt {
		if n, ok := New(c[0]); ok {
			if _, ok := n.Distance("Dr. Anna " + c[1] + " GmbH"); ok {
				found++
				continue
			}
		}
		t.Logf("%s does not find %s", c[0], c[1])
	}
	for _, c := range different {
		n, _ := New(c[0])
		if d, ok := n.Distance(c[1]); ok {
			wrong++
			t.Logf("%s finds %s (%d)", c[0], c[1], d)
		}
	}
	t.Logf("%d of %d misspelt names found, %d of %d other names found", found, len(misspelt), wrong, len(different))
	if found < len(misspelt)*95/100 || wrong > len(different)*15/100 {
		t.Errorf("want at least 95 %% of the misspelt and at most 15 %% of the other names")
	}
}

// The name itself is nearer than what is misspelt, and that is nearer than what only sounds alike.
func TestDistance_Order(t *testing.T) {
	t.Parallel()
	n, _ := New("anna maier")
	last := -1
	for _, text := range []string{"Maier, Anna", "Anna Meier", "Ana Meier", "Ana Mayr"} {
		d, ok := n.Distance(text)
		if !ok || d <= last {
			t.Errorf("%s: %d, %v after %d", text, d, ok, last)
		}
		last = d
	}
}

func TestNew_NoNames(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "4711", "a@b.example", "ab", "  ", "50%", "one two three four five six seven"} {
		if _, ok := New(text); ok {
			t.Errorf("%q is a name", text)
		}
	}
}

func TestSound(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"mueller": "657", "ludenscheidt": "52682", "breschnew": "17863", "wikipedia": "3412", "cernak": "8764",
		"meier": "67", "smith": "862", "": ""} {
		if got := sound(word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"smith", "smiht", 1}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"abcd", "abd", 1}, {"abd", "abcd", 1}, {"abcdef", "badcfe", 3}, {"", "", 0}} {
		if got := edits(c.a, c.b, 3); got != c.want {
			t.Errorf("%s, %s: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := edits(c.a, c.b, 0); c.want > 0 && got != 1 {
			t.Errorf("%s, %s above the limit: %d", c.a, c.b, got)
		}
	}
}

func BenchmarkDistance(b *testing.B) {
	n, _ := New("Katherine Meier")
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("%s %s", misspelt[i%len(misspelt)][0], misspelt[i/7%len(misspelt)][1])
	}
	for i := 0; b.Loop(); i++ {
		n.Distance(names[i%len(names)])
	}
}

// An index of hashes finds as many of the labelled names by their spellings as a comparison with all names.
func TestSpellings_LabelledMisspellings(t *testing.T) {
	t.Parallel()
	found, most := 0, 0
	for _, c := range misspelt {
		n, spelled := 0, false
		Spellings(strings.ToLower(c[0]), func(s string) {
			n++
			spelled = spelled || s == strings.ToLower(c[1])
		})
		most = max(most, n)
		if spelled {
			found++
		} else {
			t.Logf("%s does not become %s", c[0], c[1])
		}
	}
	t.Logf("%d of %d, %d spellings at most", found, len(misspelt), most)
	if found < len(misspelt)*95/100 || most > 30_000 {
		t.Errorf("want at least 95 %% of the misspelt names, of at most 30,000 spellings")
	}
	for _, word := range []string{"", "ab", "a1b2", "4711", strings.Repeat("long", 8)} {
		Spellings(word, func(s string) { t.Errorf("%q becomes %q", word, s) })
	}
}

func BenchmarkSpellings(b *testing.B) {
	for b.Loop() {
		Spellings("zimmermann", func(string) {})
	}
}
