package engine

import (
	"strings"
	"testing"
)

func TestWordsAreSaidByTheirLetters(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"zyntrix": "Z IH N T R IH K S", "gallagher": "G AE L AH G ER", "through": "TH R UW", "knight": "N AY T",
		"phone": "F OW N", "box": "B AA K S", "": "", "42": ""} {
		if got := NewSounding().Phones(word); got != want {
			t.Errorf("%q is said %q, want %q", word, got, want)
		}
	}
}

func TestSoundsThatLeadNowhereAreRefused(t *testing.T) {
	t.Parallel()
	nodes := strings.LastIndex(soundsData, "\n") + 1 // a tree may contain a newline: then the rest is not a whole number of nodes
	for name, data := range map[string]string{"empty": "", "another mark": "sounds9" + soundsData[7:], "cut": soundsData[:len(soundsData)-1],
		"without trees": soundsData[:min(nodes, 40)], "a question that leads back": soundsData[:len(soundsData)-6] + "\x01\x00\x00" + soundsData[len(soundsData)-3:]} {
		if _, err := ReadSounding(data); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
