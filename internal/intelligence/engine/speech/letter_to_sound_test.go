package speech

import (
	"strings"
	"testing"
)

func TestLetterToSound_Phones(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"zyntrix": "Z IH N T R IH K S", "gallagher": "G AE L AH G ER", "through": "TH R UW", "knight": "N AY T",
		"phone": "F OW N", "box": "B AA K S", "": "", "42": ""} {
		if got := NewLetterToSound().Phones(word); got != want {
			t.Errorf("%q is said %q, want %q", word, got, want)
		}
	}
}

func TestReadLetterToSound_DamagedRefused(t *testing.T) {
	t.Parallel()
	nodes := strings.LastIndex(letterToSoundData, "\n") + 1 // a tree may contain a newline: then the rest is not a whole number of nodes
	for name, data := range map[string]string{"empty": "", "another mark": "sounds9" + letterToSoundData[7:], "cut": letterToSoundData[:len(letterToSoundData)-1],
		"without trees": letterToSoundData[:min(nodes, 40)], "a question that leads back": letterToSoundData[:len(letterToSoundData)-6] + "\x01\x00\x00" + letterToSoundData[len(letterToSoundData)-3:]} {
		if _, err := ReadLetterToSound(data); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
