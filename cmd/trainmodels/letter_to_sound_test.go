package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine/speech"
)

// Pronunciation rules are learnt from words and apply to other words.
func TestBuildSounds(t *testing.T) {
	t.Parallel()
	var words strings.Builder
	said := map[rune]string{'a': "AE", 'e': "EH", 'b': "B", 't': "T", 'n': "N", 'k': "K", 's': "S"}
	for _, first := range "btnks" {
		for _, vowel := range "ae" {
			for _, last := range "btnks" {
				// An x is two phones. An e at the end is none and changes the vowel.
				words.WriteString(string([]rune{first, vowel, last}) + " " + said[first] + " " + said[vowel] + " " + said[last] + "\n")
				words.WriteString(string([]rune{first, vowel, last, 'e'}) + " " + said[first] + " EY " + said[last] + "\n")
				words.WriteString(string([]rune{first, vowel, 'x'}) + strings.Repeat("b", int(last)%2) + " " + said[first] + " " + said[vowel] + " K S" + strings.Repeat(" B", int(last)%2) + "\n")
			}
		}
	}
	file := filepath.Join(t.TempDir(), "words.dict")
	if err := os.WriteFile(file, []byte("'bout B AW T\na(2) EY\n"+words.String()+words.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := buildSounds(file, 2)
	if err != nil {
		t.Fatal(err)
	}
	s, err := speech.ReadLetterToSound(string(b))
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{"bat": "B AE T", "kate": "K EY T", "sex": "S EH K S", "tenbat": "T EH N B AE T"} {
		if got := s.Phones(word); got != want {
			t.Errorf("%s is said %s, want %s", word, got, want)
		}
	}
	if _, err := buildSounds(os.DevNull, 2); err == nil {
		t.Error("rules were made of no words")
	}
}
